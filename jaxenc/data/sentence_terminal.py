"""The characters with Unicode's property Sentence_Terminal, which `unicodedata` does not have.

Source: PropList.txt of the Unicode Character Database, version 17.0.0; SentenceBreakProperty.txt has the same characters as STerm (and the
full stops U+002E, U+2024, U+FE52 and U+FF0E as ATerm). Tibetan's shad, Thai and Lao have none.
"""

VERSION = "17.0.0"
# Those that are the commas of their scripts: Myanmar little section, Balinese carik siki, Javanese pada lingsa. The code point after each
# is the full stop. Unicode has no property for commas (both have Terminal_Punctuation too), and leaves such exceptions to a tailoring
# (UAX 29).
COMMAS = "\u104a\u1b5e\ua9c8"
RANGES = (
    "0021 002E 003F 0589 061D-061F 06D4 0700-0702 07F9 0837 0839 083D-083E 0964-0965 104A-104B 1362 1367-1368 166E 1735-1736 17D4-17D5 1803"
    " 1809 1944-1945 1AA8-1AAB 1B4E-1B4F 1B5A-1B5B 1B5E-1B5F 1B7D-1B7F 1C3B-1C3C 1C7E-1C7F 2024 203C-203D 2047-2049 2CF9-2CFB 2E2E 2E3C"
    " 2E53-2E54 2E60-2E61 3002 A4FF A60E-A60F A6F3 A6F7 A876-A877 A8CE-A8CF A92F A9C8-A9C9 AA5D-AA5F AAF0-AAF1 ABEB FE12 FE15-FE16 FE52"
    " FE56-FE57 FF01 FF0E FF1F FF61 10A56-10A57 10F55-10F59 10F86-10F89 11047-11048 110BE-110C1 11141-11143 111C5-111C6 111CD 111DE-111DF"
    " 11238-11239 1123B-1123C 112A9 113D4-113D5 1144B-1144C 115C2-115C3 115C9-115D7 11641-11642 1173C-1173E 11944 11946 11A42-11A43"
    " 11A9B-11A9C 11C41-11C42 11EF7-11EF8 11F43-11F44 16A6E-16A6F 16AF5 16B37-16B38 16B44 16D6E-16D6F 16E98 1BC9F 1DA88"
)


def characters() -> str:
    """All of them, by their numbers."""
    ends = ([int(end, 16) for end in part.split("-")] for part in RANGES.split())
    return "".join(chr(number) for first, *last in ends for number in range(first, (last or [first])[0] + 1))
