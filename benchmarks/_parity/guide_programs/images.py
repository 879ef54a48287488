"""Images: files, decoding, augmentation, detection and segmentation."""

# ruff: noqa: F821
import pathlib

import numpy as np

from _parity.guide_programs.files import photos, png_bytes


def classes_from_folders(here):
    root = photos(here, {"daisy": 3, "rose": 4, "tulip": 2})
    names = np.array(sorted(item.name for item in root.iterdir()))
    files = tf.data.Dataset.list_files(str(root / "*/*.jpg"), shuffle=False)

    def process(path):
        label = tf.argmax(tf.strings.split(path, "/")[-2] == names)
        image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
        return tf.image.resize(image, [32, 32]), label

    return files.map(process, num_parallel_calls=tf.data.AUTOTUNE).batch(4).prefetch(tf.data.AUTOTUNE)


def convert_and_resize(here):
    root = photos(here, {"a": 3})

    def parse_image(filename):
        image = tf.io.read_file(filename)
        image = tf.io.decode_jpeg(image)
        image = tf.image.convert_image_dtype(image, tf.float32)
        return tf.image.resize(image, [48, 40])

    return tf.data.Dataset.list_files(str(root / "a/*.jpg"), shuffle=False).map(parse_image)


def cast_resize_divide(here):
    root = photos(here, {"a": 3})

    def load(path):
        image = tf.cast(tf.io.decode_jpeg(tf.io.read_file(path), channels=3), tf.float32)
        image = tf.image.resize(image, (24, 24))
        image /= 255.0
        return image

    return tf.data.Dataset.list_files(str(root / "a/*.jpg"), shuffle=False).map(load).batch(2, drop_remainder=True)


def normalised_by_channel(here):
    images = np.random.default_rng(0).integers(0, 256, (5, 16, 16, 3), dtype=np.uint8)
    mean, std = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]

    def normalise(image):
        image = tf.cast(image, tf.float32) / 255.0
        return (image - mean) / std

    return tf.data.Dataset.from_tensor_slices(images).map(normalise).batch(3)


def caffe_means(here):
    images = np.random.default_rng(1).integers(0, 256, (4, 8, 8, 3), dtype=np.uint8)

    def center(image):
        image = tf.cast(image, tf.float32)[..., ::-1]
        return image - tf.constant([103.939, 116.779, 123.68])

    return tf.data.Dataset.from_tensor_slices(images).map(center)


def flips_and_rotations(here):
    image = np.arange(5 * 4 * 3, dtype=np.uint8).reshape(5, 4, 3)

    def variants(k):
        turned = tf.image.rot90(image, k=1)
        return tf.image.flip_left_right(turned), tf.image.flip_up_down(turned), tf.image.transpose(turned), k

    return tf.data.Dataset.range(2).map(variants)


def central_crop_and_pad(here):
    images = np.random.default_rng(2).integers(0, 256, (3, 20, 30, 3), dtype=np.uint8)

    def crop(image):
        image = tf.image.central_crop(image, 0.5)
        image = tf.image.resize_with_crop_or_pad(image, 16, 16)
        return tf.image.pad_to_bounding_box(image, 2, 3, 24, 24)

    return tf.data.Dataset.from_tensor_slices(images).map(crop)


def colour_adjustments(here):
    images = np.random.default_rng(3).random((3, 8, 8, 3), dtype=np.float32)

    def adjust(image):
        image = tf.image.adjust_brightness(image, 0.1)
        image = tf.image.adjust_contrast(image, 1.5)
        image = tf.image.adjust_saturation(image, 0.8)
        return tf.clip_by_value(image, 0.0, 1.0)

    return tf.data.Dataset.from_tensor_slices(images).map(adjust)


def grayscale_digits(here):
    images = np.random.default_rng(4).integers(0, 256, (6, 28, 28), dtype=np.uint8)
    labels = np.arange(6) % 10

    def scale(image, label):
        return tf.expand_dims(tf.cast(image, tf.float32) / 255.0, -1), tf.one_hot(label, 10)

    return tf.data.Dataset.from_tensor_slices((images, labels)).map(scale).batch(4)


def stateless_augmentation(here):
    images = np.random.default_rng(5).integers(0, 256, (4, 12, 12, 3), dtype=np.uint8)
    seeds = tf.data.Dataset.zip((tf.data.Dataset.counter(), tf.data.Dataset.counter()))

    def augment(image, seed):
        image = tf.image.resize_with_crop_or_pad(image, 16, 16)
        new_seed = tf.random.split(seed, num=1)[0, :]
        image = tf.image.stateless_random_crop(image, size=[12, 12, 3], seed=seed)
        return tf.image.stateless_random_flip_left_right(image, seed=new_seed)

    return tf.data.Dataset.zip((tf.data.Dataset.from_tensor_slices(images), seeds)).map(augment)


def stateless_brightness(here):
    images = np.random.default_rng(6).random((3, 8, 8, 3), dtype=np.float32)

    def augment(i, image):
        seed = tf.stack([i, i + 1])
        image = tf.image.stateless_random_brightness(image, max_delta=0.3, seed=seed)
        return tf.image.stateless_random_contrast(image, 0.5, 1.5, seed)

    return tf.data.Dataset.from_tensor_slices(images).enumerate().map(augment)


def randomly_flipped(here):
    images = np.random.default_rng(7).random((3, 6, 6, 3), dtype=np.float32)

    def augment(image):
        if tf.random.uniform(()) > 0.5:
            image = tf.image.flip_left_right(image)
        return tf.cast(image, tf.float32)

    return tf.data.Dataset.from_tensor_slices(images).map(augment)


def segmentation_pairs(here):
    images = np.random.default_rng(8).integers(0, 256, (4, 20, 20, 3), dtype=np.uint8)
    masks = np.random.default_rng(9).integers(1, 4, (4, 20, 20, 1), dtype=np.uint8)

    def load_image(datapoint):
        image = tf.image.resize(datapoint["image"], (16, 16))
        mask = tf.image.resize(datapoint["mask"], (16, 16), method=tf.image.ResizeMethod.NEAREST_NEIGHBOR)
        image = tf.cast(image, tf.float32) / 255.0
        mask -= 1
        return image, mask

    return tf.data.Dataset.from_tensor_slices({"image": images, "mask": masks}).map(load_image).batch(2)


def class_weights(here):
    masks = np.random.default_rng(10).integers(0, 3, (3, 4, 4, 1))

    def add_weights(mask):
        weights = tf.constant([2.0, 2.0, 1.0])
        weights = weights / tf.reduce_sum(weights)
        return mask, tf.gather(weights, indices=tf.cast(mask, tf.int32))

    return tf.data.Dataset.from_tensor_slices(masks).map(add_weights)


def boxes_scaled(here):
    boxes = np.random.default_rng(11).random((3, 2, 4), dtype=np.float32)

    def to_pixels(box):
        ymin, xmin, ymax, xmax = tf.unstack(box, axis=-1)
        corners = tf.stack([xmin * 640.0, ymin * 480.0, xmax * 640.0, ymax * 480.0], axis=-1)
        area = (corners[:, 2] - corners[:, 0]) * (corners[:, 3] - corners[:, 1])
        return {"boxes": tf.round(corners), "valid": area > 0}

    return tf.data.Dataset.from_tensor_slices(boxes).map(to_pixels)


def boxes_padded(here):
    def generate():
        rng = np.random.default_rng(12)
        for count in (2, 0, 3):
            yield {"boxes": rng.random((count, 4), dtype=np.float32), "classes": rng.integers(0, 9, count)}

    signature = {
        "boxes": tf.TensorSpec(shape=(None, 4), dtype=tf.float32),
        "classes": tf.TensorSpec(shape=(None,), dtype=tf.int64),
    }
    ds = tf.data.Dataset.from_generator(generate, output_signature=signature)
    return ds.padded_batch(3, padding_values={"boxes": 0.0, "classes": tf.constant(-1, tf.int64)})


def boxes_flipped(here):
    images = np.random.default_rng(13).integers(0, 256, (2, 8, 8, 3), dtype=np.uint8)
    boxes = np.random.default_rng(14).random((2, 3, 4), dtype=np.float32)

    def flip(image, box):
        flipped = tf.stack([box[:, 0], 1 - box[:, 3], box[:, 2], 1 - box[:, 1]], axis=-1)
        return tf.image.flip_left_right(image), flipped

    return tf.data.Dataset.from_tensor_slices((images, boxes)).map(flip)


def patches_of_images(here):
    images = np.random.default_rng(15).random((2, 8, 8, 1), dtype=np.float32)

    def patches(image):
        found = tf.image.extract_patches(
            image[tf.newaxis], sizes=[1, 4, 4, 1], strides=[1, 4, 4, 1], rates=[1, 1, 1, 1], padding="VALID"
        )
        return tf.reshape(found, [-1, 4, 4, 1])

    return tf.data.Dataset.from_tensor_slices(images).map(patches).unbatch()


def png_masks(here):
    folder = pathlib.Path(here)
    for number in range(3):
        (folder / f"mask{number}.png").write_bytes(png_bytes(number, (6, 5, 1)))

    def load(path):
        mask = tf.io.decode_png(tf.io.read_file(path), channels=1)
        return tf.squeeze(mask, axis=-1) > 127, tf.strings.regex_replace(path, ".*/", "")

    return tf.data.Dataset.list_files(str(folder / "*.png"), shuffle=False).map(load)


def damaged_images_left_out(here):
    good = png_bytes(0, (4, 4, 3))
    ds = tf.data.Dataset.from_tensor_slices([good, b"no image", good])
    return ds.map(lambda data: tf.io.decode_png(data, channels=3)).ignore_errors()


def mixed_images(here):
    images = np.random.default_rng(16).random((4, 4, 4, 3), dtype=np.float32)
    labels = np.eye(4, dtype=np.float32)
    ds = tf.data.Dataset.from_tensor_slices((images, labels))

    def mixup(first, second):
        (image_a, label_a), (image_b, label_b) = first, second
        share = tf.constant(0.25)
        return share * image_a + (1 - share) * image_b, share * label_a + (1 - share) * label_b

    return tf.data.Dataset.zip((ds, ds.skip(1))).map(mixup)
