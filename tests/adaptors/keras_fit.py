"""What Keras does with `to_keras()` on one backend: a script, because a process has one backend. Prints "fits"."""

import os
import sys
import warnings

import numpy as np

import penstock as ps


def main(backend):
    os.environ["KERAS_BACKEND"] = backend
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import keras
    from keras import layers

    warnings.simplefilter("error")
    warnings.filterwarnings("ignore", message="__array__ implementation")  # Keras's own, where torch gives predictions

    values = np.random.default_rng(0).normal(size=(100, 4)).astype(np.float32)
    labels = (values.sum(1) > 0).astype(np.int64)
    rows = ps.Dataset.from_tensor_slices((values, labels))
    train = rows.shuffle(100).batch(32).prefetch(2)

    def classifier():
        keras.utils.set_random_seed(1)
        model = keras.Sequential([layers.Dense(16, activation="relu"), layers.Dense(2)])
        model.compile(
            keras.optimizers.Adam(0.05),
            keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=["accuracy"],
        )
        return model

    class Steps(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            self.epochs = [*getattr(self, "epochs", []), 0]

        def on_train_batch_end(self, batch, logs=None):
            self.epochs[-1] += 1

    def fit(dataset, model=None, **arguments):
        model, steps = model or classifier(), Steps()
        adapter = dataset if not isinstance(dataset, ps.Dataset) else dataset.to_keras()
        history = model.fit(adapter, callbacks=[steps], verbose=0, **arguments).history
        return steps.epochs, history

    def near(a, b):
        return bool(np.allclose(a, b, rtol=1e-4, atol=1e-5))

    # A known length: epochs end, training and validation learn.
    model = classifier()
    steps, history = fit(train, model, epochs=6, validation_data=rows.batch(50).to_keras())
    assert steps == [4] * 6, steps
    assert history["val_accuracy"][-1] > 0.9, history
    by_arrays = model.evaluate(values, labels, batch_size=50, verbose=0)
    assert near(model.evaluate(rows.batch(50).to_keras(), verbose=0), by_arrays)
    assert near(model.predict(rows.batch(32).to_keras(), verbose=0), model.predict(values, batch_size=32, verbose=0))

    # Epochs are passes: the pass that Keras opens to build the model is none, and each shuffles anew.
    seen = []
    spied = train.map(lambda x, y: (seen.append(x[0].tolist()), (x, y))[1])
    adapter = spied.to_keras()
    fit(adapter, epochs=2)
    assert adapter._epoch == 2
    in_order = [x[0].tolist() for epoch in range(2) for x, _ in train.iterator(epoch=epoch)]
    assert [x for x in seen if x in in_order][-4:] == in_order[-4:]

    # An unknown length: each epoch has its own, without a warning, and the filters of warnings are left alone.
    filters = list(warnings.filters)

    class Filters(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            assert warnings.filters == filters

        on_epoch_end = on_test_batch_end = on_train_batch_end

    steps, _ = fit(rows.filter(lambda x, y: x[0] > 0).batch(8), epochs=3)
    assert steps == [-(-int((values[:, 0] > 0).sum()) // 8)] * 3, steps
    some = rows.filter(lambda x, y: x[0] > 0).batch(8).to_keras()
    classifier().fit(some, epochs=2, validation_data=some, callbacks=[Filters()], verbose=0)

    # ... which may be longer or shorter than that of the epoch before.
    counts = iter([2, 7, 1, 4])

    def varying():
        for _ in range(next(counts)):
            yield values[:8], labels[:8]

    signature = (ps.TensorSpec((8, 4), np.float32), ps.TensorSpec((8,), np.int64))
    built = classifier()
    built.build((None, 4))
    built.evaluate(values, labels, verbose=0)  # so that no pass is opened to build it
    varied = ps.Dataset.from_generator(varying, output_signature=signature)
    assert fit(varied, built, epochs=4)[0] == [2, 7, 1, 4]
    assert warnings.filters == filters

    # With steps_per_epoch Keras's warning about too little data is the program's to see.
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit(rows.filter(lambda x, y: x[0] > 0).batch(8), epochs=1, steps_per_epoch=500)
    assert any("ran out of data" in str(warning.message) for warning in caught), caught

    # steps_per_epoch over a data set without end: one pass goes on through the epochs.
    steps, _ = fit(train.repeat(), epochs=3, steps_per_epoch=5)
    assert steps == [5, 5, 5], steps

    # Weights of samples and of classes are those of fit over arrays.
    weights = np.where(labels == 1, 3.0, 1.0).astype(np.float32)
    _, by_class = fit(rows.batch(50).to_keras(class_weight={1: 3.0}), epochs=2)
    _, by_sample = fit(ps.Dataset.from_tensor_slices((values, labels, weights)).batch(50), epochs=2)
    arrays = classifier().fit(
        values, labels, class_weight={0: 1.0, 1: 3.0}, batch_size=50, shuffle=False, epochs=2, verbose=0
    )
    assert near(by_class["loss"], by_sample["loss"])
    assert near(by_class["loss"], arrays.history["loss"])

    # What Keras would ignore, and the data set itself, are errors that say what to write.
    print(refused(lambda: classifier().fit(train.to_keras(), class_weight={0: 1.0}, verbose=0)))
    print(refused(lambda: classifier().fit(train.to_keras(), labels, verbose=0)))
    print(refused(lambda: classifier().evaluate(train.to_keras(), sample_weight=weights, verbose=0)))
    for call in (
        lambda: classifier().fit(train, verbose=0),
        lambda: classifier().fit(values, labels, validation_data=train, verbose=0),
        lambda: classifier().predict(train, verbose=0),
    ):
        assert "give Keras ds.to_keras(), in place of the data set itself" in refused(call)
    assert "to_keras" not in f"{train}"

    # Several inputs by name; elements whose spec only running tells.
    inputs = {"a": keras.Input((4,), name="a"), "b": keras.Input((1,), name="b")}
    joined = keras.Model(inputs, layers.Dense(1)(layers.Concatenate()([inputs["a"], inputs["b"]])))
    joined.compile("sgd", "mse")
    named = rows.batch(25).map(lambda x, y: ({"a": np.array(x), "b": np.array(x[:, :1])}, y.astype(np.float32)))
    assert fit(named, joined, epochs=2)[0] == [4, 4]

    text = ps.Dataset.from_tensor_slices((["red", "green", "red", "blue"], [0.0, 1.0, 0.0, 1.0])).batch(2)
    if backend == "tensorflow":  # whose tensors hold text, for layers that look it up; and ragged rows
        lookup = layers.StringLookup(vocabulary=["red", "green"])
        words = keras.Sequential([keras.Input((), dtype="string"), lookup, layers.Embedding(3, 2), layers.Dense(1)])
        words.compile("sgd", "mse")
        assert fit(text, words, epochs=1)[0] == [2]
        ragged = ps.Dataset.range(4).map(lambda x: (np.arange(int(x) + 1, dtype=np.float32), x)).ragged_batch(2)
        spec = ragged.to_keras().get_tf_dataset().element_spec
        assert [type(part).__name__ for part in spec] == ["RaggedTensorSpec", "TensorSpec"], spec
    else:
        print(refused(lambda: fit(text, epochs=1)))
        ragged = ps.Dataset.range(4).map(lambda x: ({"word": np.arange(int(x) + 1.0)}, x)).ragged_batch(2)
        print(refused(lambda: fit(ragged, epochs=1)))

    print("fits")


def refused(call):
    try:
        call()
    except (ValueError, TypeError) as error:
        return f"{error}\n"
    raise AssertionError("this cannot be trained on")


if __name__ == "__main__":
    main(sys.argv[1])
