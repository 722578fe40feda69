"""Every sentence of the limit page, in each language it speaks, and waits said as a person would say them.

One dict a language, all with the same keys. ``{}`` stands for a wait, in the case that its sentence asks
for; units come with all their plural forms, by the rules of Unicode's CLDR.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

DEFAULT = "en"

TEXTS: Mapping[str, Mapping[str, str]] = {
    "en": {
        "network": "Too many people from this network at once",
        "person": "You are going a little fast",
        "plain": "Too many requests",
        "unavailable": "This is not possible right now",
        "about": "You see this page when more requests come in than one person or one network may send here.",
        "trouble": "The trouble is on our side, not yours. Nothing has been carried out.",
        "wait": "You can go on in {}",
        "over": "You can go on now.",
        "closed": "Waiting does not help here.",
        "retry": "It is worth another try in {}.",
        "again": "Try again",
        "back": "Go back",
        "hint": "Use your browser’s back button.",
        "roughly": "about {}",
        "second": "{} second|{} seconds",
        "minute": "{} minute|{} minutes",
        "hour": "{} hour|{} hours",
        "day": "{} day|{} days",
    },
    "de": {
        "network": "Zu viele Leute auf einmal aus diesem Netz",
        "person": "Das war ein bisschen zu schnell",
        "plain": "Zu viele Anfragen",
        "unavailable": "Das geht gerade nicht",
        "about": "Diese Seite erscheint, wenn mehr Anfragen kommen, als eine Person oder ein Netz hier "
        "stellen darf.",
        "trouble": "Es liegt an uns, nicht an Ihnen. Es wurde nichts ausgeführt.",
        "wait": "Weiter geht es in {}",
        "over": "Jetzt geht es weiter.",
        "closed": "Warten hilft hier nicht.",
        "retry": "Ein neuer Versuch lohnt sich in {}.",
        "again": "Erneut versuchen",
        "back": "Zurück",
        "hint": "Nutzen Sie die Zurück-Taste Ihres Browsers.",
        "roughly": "etwa {}",
        "second": "{} Sekunde|{} Sekunden",
        "minute": "{} Minute|{} Minuten",
        "hour": "{} Stunde|{} Stunden",
        "day": "{} Tag|{} Tagen",
    },
    "fr": {
        "network": "Trop de monde à la fois sur ce réseau",
        "person": "Vous allez un peu vite",
        "plain": "Trop de requêtes",
        "unavailable": "Ce n’est pas possible pour le moment",
        "about": "Cette page s’affiche quand il arrive plus de requêtes qu’une personne ou un réseau ne "
        "peut en envoyer ici.",
        "trouble": "Le problème vient de chez nous, pas de vous. Rien n’a été effectué.",
        "wait": "Vous pourrez continuer dans {}",
        "over": "Vous pouvez continuer.",
        "closed": "Attendre ne change rien ici.",
        "retry": "Vous pourrez réessayer dans {}.",
        "again": "Réessayer",
        "back": "Retour",
        "hint": "Utilisez le bouton de retour de votre navigateur.",
        "roughly": "environ {}",
        "second": "{} seconde|{} secondes",
        "minute": "{} minute|{} minutes",
        "hour": "{} heure|{} heures",
        "day": "{} jour|{} jours",
    },
    "es": {
        "network": "Demasiada gente a la vez desde esta red",
        "person": "Vas un poco rápido",
        "plain": "Demasiadas solicitudes",
        "unavailable": "Ahora mismo no es posible",
        "about": "Esta página aparece cuando llegan más solicitudes de las que una persona o una red puede "
        "enviar aquí.",
        "trouble": "El problema es nuestro, no tuyo. No se ha realizado nada.",
        "wait": "Podrás continuar en {}",
        "over": "Ya puedes continuar.",
        "closed": "Aquí no sirve de nada esperar.",
        "retry": "Puedes volver a intentarlo en {}.",
        "again": "Reintentar",
        "back": "Volver",
        "hint": "Usa el botón «Atrás» de tu navegador.",
        "roughly": "aproximadamente {}",
        "second": "{} segundo|{} segundos",
        "minute": "{} minuto|{} minutos",
        "hour": "{} hora|{} horas",
        "day": "{} día|{} días",
    },
    "it": {
        "network": "Troppe persone insieme da questa rete",
        "person": "Stai andando un po’ veloce",
        "plain": "Troppe richieste",
        "unavailable": "In questo momento non è possibile",
        "about": "Questa pagina compare quando arrivano più richieste di quante una persona o una rete possa "
        "inviarne qui.",
        "trouble": "Il problema è nostro, non tuo. Non è stato eseguito nulla.",
        "wait": "Potrai continuare tra {}",
        "over": "Ora puoi continuare.",
        "closed": "Qui aspettare non serve.",
        "retry": "Puoi riprovare tra {}.",
        "again": "Riprova",
        "back": "Indietro",
        "hint": "Usa il pulsante Indietro del browser.",
        "roughly": "circa {}",
        "second": "{} secondo|{} secondi",
        "minute": "{} minuto|{} minuti",
        "hour": "{} ora|{} ore",
        "day": "{} giorno|{} giorni",
    },
    "nl": {
        "network": "Te veel mensen tegelijk vanaf dit netwerk",
        "person": "Je gaat een beetje snel",
        "plain": "Te veel verzoeken",
        "unavailable": "Dit lukt nu even niet",
        "about": "Deze pagina verschijnt als er meer verzoeken komen dan één persoon of één netwerk hier mag "
        "sturen.",
        "trouble": "Het ligt aan ons, niet aan jou. Er is niets uitgevoerd.",
        "wait": "Je kunt verder over {}",
        "over": "Je kunt nu verder.",
        "closed": "Wachten helpt hier niet.",
        "retry": "Je kunt het opnieuw proberen over {}.",
        "again": "Opnieuw proberen",
        "back": "Terug",
        "hint": "Gebruik de terugknop van je browser.",
        "roughly": "ongeveer {}",
        "second": "{} seconde|{} seconden",
        "minute": "{} minuut|{} minuten",
        "hour": "{} uur|{} uur",
        "day": "{} dag|{} dagen",
    },
    "pl": {
        "network": "Zbyt wiele osób naraz z tej sieci",
        "person": "Trochę za szybko",
        "plain": "Zbyt wiele żądań",
        "unavailable": "W tej chwili to niemożliwe",
        "about": "Ta strona pojawia się, gdy przychodzi więcej żądań, niż może tu wysłać jedna osoba lub "
        "jedna sieć.",
        "trouble": "Problem jest po naszej stronie, nie po Twojej. Nic nie zostało wykonane.",
        "wait": "Możesz kontynuować za {}",
        "over": "Możesz już kontynuować.",
        "closed": "Czekanie tu nie pomoże.",
        "retry": "Możesz spróbować ponownie za {}.",
        "again": "Spróbuj ponownie",
        "back": "Wstecz",
        "hint": "Użyj przycisku Wstecz w przeglądarce.",
        "roughly": "mniej więcej {}",
        "second": "{} sekundę|{} sekundy|{} sekund",
        "minute": "{} minutę|{} minuty|{} minut",
        "hour": "{} godzinę|{} godziny|{} godzin",
        "day": "{} dzień|{} dni|{} dni",
    },
    "pt": {
        "network": "Pessoas demais nesta rede ao mesmo tempo",
        "person": "Um pouco rápido demais",
        "plain": "Pedidos demais",
        "unavailable": "Não é possível neste momento",
        "about": "Esta página aparece quando chegam mais pedidos do que uma pessoa ou uma rede pode enviar "
        "aqui.",
        "trouble": "O problema é nosso, não seu. Nada foi executado.",
        "wait": "Poderá continuar dentro de {}",
        "over": "Já pode continuar.",
        "closed": "Aqui não adianta esperar.",
        "retry": "Pode tentar novamente dentro de {}.",
        "again": "Tentar novamente",
        "back": "Voltar",
        "hint": "Use o botão Voltar do navegador.",
        "roughly": "aproximadamente {}",
        "second": "{} segundo|{} segundos",
        "minute": "{} minuto|{} minutos",
        "hour": "{} hora|{} horas",
        "day": "{} dia|{} dias",
    },
}

#: Which unit a wait is told in: its seconds, its name, and from how many seconds on.
_UNITS = ((86_400, "day", 172_800), (3_600, "hour", 7_200), (60, "minute", 120), (1, "second", 0))


def choose(accepted: Iterable[tuple[str, float]]) -> str:
    """Choose the language that a reader likes best of those the page speaks.

    :param accepted: the tags of ``Accept-Language`` with their q, best first (RFC 9110, 12.5.4). The
        first part of a tag decides (RFC 4647, 3.4): ``de-AT`` is German.
    :returns: one of the catalogue's tags; English where it has none that is asked for.
    """
    for tag, q in accepted:
        language = tag.partition("-")[0].lower()
        if q > 0 and language in TEXTS:
            return language
    return DEFAULT


def texts(language: str) -> Mapping[str, str]:
    """Give the sentences of a language; English for one that the page does not speak."""
    return TEXTS.get(language, TEXTS[DEFAULT])


def in_words(seconds: int | None, language: str = DEFAULT) -> str:
    """Say a wait as a person would: "1 second", "90 seconds", "about 3 minutes"; never too short.

    :returns: empty where there is nothing to wait for.
    """
    if not seconds:
        return ""
    said = texts(language)
    size, unit, _ = next(row for row in _UNITS if seconds >= row[2])
    count = -(-seconds // size)
    forms = said[unit].split("|")
    words = forms[_FORM.get(language, _one_or_many)(count)].format(count)
    return words if seconds % size == 0 else said["roughly"].format(words)


def _one_or_many(count: int) -> int:
    return int(count != 1)


def _polish(count: int) -> int:
    """One; few, which is 2 to 4 at the end but not 12 to 14; many."""
    if count == 1:
        return 0
    return 1 if count % 10 in (2, 3, 4) and count % 100 not in (12, 13, 14) else 2


_FORM: Mapping[str, Callable[[int], int]] = {"pl": _polish}
