"""Lightning, Accelerate and the Trainer of Hugging Face take a loader, and go on with it in the middle of an epoch."""

import numpy as np
import pytest

import penstock as ps

torch = pytest.importorskip("torch")

STEPS, EPOCHS, SAVED = 12, 2, 5  # of an epoch; in which no save falls on the end


def data_set():
    points = np.random.default_rng(0).normal(size=(96, 4)).astype(np.float32)
    rows = {"x": points, "labels": np.arange(96)}
    return ps.Dataset.from_tensor_slices(rows).shuffle(96, seed=1).batch(96 // STEPS)


class Net(torch.nn.Module):
    """Notes which rows it was given."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.linear = torch.nn.Linear(4, 2)
        self.seen = []

    def forward(self, x, labels):
        self.seen.append(labels.tolist())
        logits = self.linear(x)
        return {"loss": torch.nn.functional.cross_entropy(logits, labels % 2), "logits": logits}


def two_epochs():
    return [batch["labels"].tolist() for loader in [data_set().to_torch()] for _ in range(EPOCHS) for batch in loader]


@pytest.mark.filterwarnings("default")  # theirs
class TestLightning:
    @pytest.fixture
    def fit(self, tmp_path):
        lightning = pytest.importorskip("lightning")
        from lightning.pytorch.callbacks import ModelCheckpoint

        class Module(lightning.LightningModule):
            def __init__(self):
                super().__init__()
                self.net = Net()

            def training_step(self, batch, _):
                return self.net(**batch)["loss"]

            def configure_optimizers(self):
                return torch.optim.SGD(self.parameters(), 0.1)

        def run(loader, **resume):
            module = Module()
            saving = ModelCheckpoint(tmp_path, "{step}", every_n_train_steps=SAVED, save_top_k=-1)
            trainer = lightning.Trainer(
                max_epochs=EPOCHS,
                accelerator="cpu",
                logger=False,
                enable_progress_bar=False,
                enable_model_summary=False,
                callbacks=[saving],
            )
            trainer.fit(module, loader, **resume)
            return module.net

        return run

    def test_epochs_and_a_resume_within_one(self, fit, tmp_path):
        whole = fit(data_set().to_torch())
        assert whole.seen == two_epochs()
        again = fit(data_set().to_torch(), ckpt_path=tmp_path / f"step={SAVED}.ckpt")
        assert again.seen == whole.seen[SAVED:]
        assert torch.equal(again.linear.weight, whole.linear.weight)

    def test_a_length_that_is_not_known(self, fit):
        net = fit(data_set().filter(lambda row: True).to_torch())
        assert net.seen == two_epochs()


class TestAccelerate:
    def test_the_loader_stays_what_it_is_and_is_part_of_its_checkpoints(self, tmp_path):
        accelerator = pytest.importorskip("accelerate").Accelerator(cpu=True)
        loader = data_set().to_torch()
        net, prepared = accelerator.prepare(Net(), loader)
        assert prepared is loader
        accelerator.register_for_checkpointing(loader)
        for number, batch in enumerate(prepared, 1):
            accelerator.backward(net(**batch)["loss"])
            if number == SAVED:
                accelerator.save_state(tmp_path)
        accelerator.load_state(tmp_path)
        assert [batch["labels"].tolist() for batch in loader] == two_epochs()[SAVED:STEPS]

    def test_skipping_says_what_to_do(self):
        accelerate = pytest.importorskip("accelerate")
        with pytest.raises(AttributeError, match="ignore_data_skip=True"):
            accelerate.skip_first_batches(data_set().to_torch(), 2)


class TestHuggingFace:
    @pytest.mark.filterwarnings("default")
    def test_epochs_and_a_resume_within_one(self, tmp_path):
        transformers = pytest.importorskip("transformers")

        def run(resume=None):
            loader = data_set().to_torch()

            class Train(transformers.Trainer):
                def get_train_dataloader(self):
                    return loader

            class KeepPlace(transformers.TrainerCallback):
                def on_save(self, args, state, control, **kwargs):
                    torch.save(loader.state_dict(), f"{args.output_dir}/checkpoint-{state.global_step}/data.pt")

            arguments = transformers.TrainingArguments(
                str(tmp_path),
                num_train_epochs=EPOCHS,
                per_device_train_batch_size=8,
                save_strategy="steps",
                save_steps=SAVED,
                report_to=[],
                use_cpu=True,
                disable_tqdm=True,
                ignore_data_skip=True,
                remove_unused_columns=False,
            )
            net = Net()
            trainer = Train(net, arguments, callbacks=[KeepPlace()])
            if resume is not None:
                loader.load_state_dict(torch.load(resume / "data.pt"))
            assert trainer.train(resume_from_checkpoint=resume and str(resume)).global_step == EPOCHS * STEPS
            return net

        whole = run()
        assert whole.seen == two_epochs()
        again = run(tmp_path / f"checkpoint-{SAVED}")
        assert again.seen == whole.seen[SAVED:]
        assert torch.equal(again.linear.weight, whole.linear.weight)
