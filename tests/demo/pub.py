"""A pub with a quiz going on: one address, one host elsewhere, as many phones as a test wants."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from demo_app import create_app

PUB = "198.51.100.7"
ELSEWHERE = "203.0.113.50"
PASSWORD = "a pint of stout"


class Pub:
    """The quiz app with one quiz open, before its first question.

    :param folder: where the app keeps its database.
    :param config: its settings.
    """

    def __init__(self, folder: Path, **config: Any) -> None:
        self.app: Flask = create_app(config, instance_path=str(folder))
        self.host = self.sign_up("Bea", ELSEWHERE)
        opened = self.host.post("/host/games", data={"title": "Tuesday at the Crown"})
        self.code = opened.location.rpartition("/")[2]
        self.url = f"/g/{self.code}"

    def phone(self, address: str = PUB) -> FlaskClient:
        """A browser that has not been here before."""
        client = self.app.test_client()
        client.environ_base["REMOTE_ADDR"] = address
        return client

    def guest(self, name: str, address: str = PUB) -> FlaskClient:
        """A browser that has joined the quiz."""
        phone = self.phone(address)
        joined = self.join(phone, name)
        assert joined.location == self.url, joined.text
        return phone

    def join(self, phone: FlaskClient, name: str) -> TestResponse:
        """Join the quiz."""
        return phone.post("/join", data={"code": self.code, "name": name})

    def rename(self, phone: FlaskClient, name: str = "Kim", **options: Any) -> TestResponse:
        """Change a guest's name."""
        return phone.post(f"{self.url}/name", data={"name": name}, **options)

    def answer(self, phone: FlaskClient, choice: int = 0, question: int = 1) -> TestResponse:
        """Answer a question."""
        return phone.post(f"{self.url}/answers", data={"question": question, "choice": choice})

    def poll(self, phone: FlaskClient) -> TestResponse:
        """Ask for the scores."""
        return phone.get(f"{self.url}/state")

    def scores(self) -> dict[str, int]:
        """What the scoreboard says, in its order."""
        state = self.poll(self.host).get_json()
        return {line["name"]: line["score"] for line in state["scores"]}

    def ask_next(self, seen: int) -> TestResponse:
        """Let the host go on from the question that was seen."""
        return self.host.post(f"/host/games/{self.code}/step", data={"seen": seen})

    def sign_up(self, name: str, address: str = PUB) -> FlaskClient:
        """A browser whose host has just signed up."""
        phone = self.phone(address)
        entered = phone.post("/host/sign-up", data={"name": name, "password": PASSWORD})
        assert entered.location == "/host/games", entered.text
        return phone

    def log_in(self, phone: FlaskClient, password: str = PASSWORD, name: str = "Bea") -> TestResponse:
        """Try to log in."""
        return phone.post("/host/login", data={"name": name, "password": password})

    def open_quiz(self, phone: FlaskClient) -> TestResponse:
        """Open another quiz."""
        return phone.post("/host/games", data={"title": "Another"})


def refused_by(answer: TestResponse) -> str | None:
    """The limit that refused, or None."""
    if answer.status_code != 429:
        return None
    limit: str = answer.get_json()["limit"]
    return limit
