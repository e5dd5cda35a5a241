//! The rules of negation as data: what begins, ends or stands inside a clause
//! that rules something out, in English, German, Spanish, Turkish, Arabic,
//! Persian and Chinese. NOT how they are applied.
//!
//! Each is a pattern without regard to case. What must stay is named in look-aheads: hedges ("I can't remember"),
//! "don't forget", negated arguments ("no other houses").

/// Where clauses end, with the space behind.
pub const BOUNDARY: &str =
    r"(?:[,;:.!?…\n،؛؟。，；：！？]+(?=\s|$|\p{Han})|[，،؛؟。；：！？—–\n]|\s-{1,2}\s|\((?=\s*not\b))\s*";

/// Words that may stand before a cue at the head of a clause.
pub const FILL: &str = r"^\s*(?:(?:and|but|so|please|also|then|ok|okay|well|y|e|pero|por favor|und|aber|auch|bitte|ve|ama|lütfen|لكن|ولكن|من فضلك|رجاء|و|ولی|اما|لطفا|لطفاً|请|但是?|也|都|并且?|而且|那就?|千万)[\s,]*)*";

/// The clause begins with it: from there to its end it goes.
pub const HEADS: &[&str] = &[
    // English: a verb follows, and not one that hedges or reminds
    r"(?:do not|don['’]?t|never)\s+(?!forget|hesitat|worry|know|remember|recall|see\b|have\b|think|miss\b|mind\b|understand|let\b|you\b|we\b|i\b|they\b|stop|lose|bother asking|even\b|want\b|need\b|care|get\b|recogni|find\b|like\b|feel\b)\p{L}+",
    r"never mind\s+(?:the|my|that|this)\b",
    r"(?:i|we)\s+(?:do not|don['’]?t)\s+(?:want|need)\s+(?!.*\b(?:miss|forget|lose|late|overlook|know|see)\b)\p{L}+",
    r"(?:but\s+)?not\s+(?:in|on|to|as|via|by|from|through|into|an?|my|the|another|using|with)\b(?!\s+(?:moment|least|all|time|same|case|way|sure)\b)",
    r"(?:instead of|rather than|as opposed to)\b",
    // German
    r"nicht\s+(?:in|im|ins|auf|aufs|an|ans|am|per|über|mit|als|bei|beim|via|zu|zur|zum|unter)\b",
    r"(?:ich|wir)\s+(?:möchte|will|brauche|wollen|möchten|brauchen)\s+(?:kein\p{L}*|nicht)\b(?!.*\b(?:verpass|vergess|verlier))",
    r"(?:anstatt|statt|anstelle)\b(?=.*\bzu\s+\p{L}+$)",
    // Spanish: the second person of the subjunctive
    r"no\s+(?:(?:lo|la|los|las|le|les|me|nos|te|se)\s+)?(?!olvides|tienes|tienen|puedes|pueden|sabes|saben|estás|estas|están|eres|encuentras|encuentran|dudes|dejes|pierdas|recuerdas|recuerdan|quieres|entiendes|entiendas|es\b|existen|aparecen|funcionan|las\b|les\b|los\b)\p{L}+(?:es|as|éis|áis)\b",
    r"(?:no|ni)\s+(?:en|a|al|por|con|como|un|una)\b",
    r"no\s+(?:quiero|necesito|queremos)\b(?!.*\b(?:perder|olvid|llegar tarde|se me))",
    r"(?:en vez de|en lugar de)\b",
    // Arabic
    r"و?لا\s+ت(?!نس|تردد|قلق|دع|زال|وجد|ظهر|عمل|حتو|ذكر|عرف|هتم|خف|كفي|صل)\p{L}+",
    r"و?(?:ليس|ليست|مو|مش|لا)\s+(?:في|إلى|الى|على|عبر|من)\b",
    r"و?لا\s+(?:أريد|اريد|نريد)\b(?!.*(?:يفوت|أنس|انس))",
    r"بدلا?[ًاّ]*\s+(?:من|عن)\b|عوضا?[ًا]*\s+عن\b",
    // Persian
    r"نه\s+(?:در|به|از|با|برای|توی|تو|روی)\b",
    r"(?:به جای|بجای|به\x{200C}جای)\b",
    // Chinese
    r"(?:不要|别(?![人的处名墅针具样离说称号])|不用|不必|无需|无须|不需要|用不着|不想)(?!.{0,3}(?:忘|错过|担心|客气|着急|丢))",
    r"不在(?![线职场家乎意])|(?:而不是|而非|不是)",
];

/// In [`HEADS`] these two need the next clause to go on with [`BUT_RATHER`], unless it is the second.
pub const IS_NOT: &str = "不是";
pub const AND_IS_NOT: &str = "而不是";

/// The next clause says what it is instead.
pub const BUT_RATHER: &str = r"^\s*(?:而?是|要)";

/// Inside what a head rules out, the ask goes on here.
pub const GOES_ON: &str = r"\s(?:and|y|und)\s+(?:instead|just|please|then|en su lugar|stattdessen)\b";

/// The clause ends with it (verbs stand last): the whole clause goes, where another follows.
pub const TAILS: &[&str] = &[
    // Turkish
    r"(?:değil|istemiyorum|istemem|istemiyoruz|istemez)\s*$",
    r"(?:ekle|koy|yaz|gönder|aç|oluştur|kullan|yap|bak|sil|kaydet|paylaş|at|yolla|taşı|kur|planla|ara|yükle)m[ae]y[ıi]n(?:[ıi]z)?\s*$",
    r"\S\s+\S+\s+(?:ekleme|koyma|yazma|gönderme|oluşturma|kaydetme|paylaşma|yapma|atma|yollama|kullanma|açma)\s*$",
    // Persian
    r"(?<!فراموش\s)(?:نکن(?:ید)?|نذار(?:ید)?|نگذار(?:ید)?|نفرست(?:ید)?|ننویس(?:ید)?|نزن(?:ید)?|نساز(?:ید)?|نمی[\x{200C} ]?خواهم|نمی[\x{200C} ]?خوام)\s*$",
];

/// It stands inside a clause: from there to its end it goes.
pub const MIDDLES: &[&str] = &[
    r"\s(?:instead of|rather than|as opposed to)\s.*$",
    r"\s(?:en vez de|en lugar de)\s.*$",
    r"\s(?:anstatt|anstelle)\s.*$",
    r"\s(?:بدلا?[ًا]*\s+(?:من|عن)|عوضا?[ًا]*\s+عن)\s.*$",
    r"\s(?:به جای|بجای|به\x{200C}جای)\s.*$",
    r"(?:而不是|而非).*$",
];

/// "in Drive and not in my mail": a preposition, negated; it goes when the same stands before it.
pub const AND_NOT: &str = r"\s(?:and not|but not|y no|و?لا|وليس|و?نه)\s+(in|on|to|en|a|في|إلى|على|در|به|از)\b";

/// What goes with the words it stands behind, or (German "statt") before.
pub const SPANS: &[&str] = &[
    r"^.*?m[ae]k\s+yerine\b",
    r"\S+\s+yerine\b(?!\s+(?:getir|koy))",
    r"\S+(?:\s+d[ae])?\s+değil\b(?=\s+\S)",
    r"(?:^|\s)statt\s+(?:(?:eine[rsnm]?|des|der|dem|den)\s+)?\S+",
];

/// German "nicht A, sondern B": with the second in the next clause, the first goes.
pub const RATHER: &str = r"^\s*(?:sondern|stattdessen|lieber)\b";
pub const NOT: &str = r"\b(?:nicht|kein(?:e[nmrs]?)?)\b.*$";

/// "no calendar entry," before what is wanted; not "no problem".
pub const NO: &str = r"^\s*(?:(?:no|kein(?:e[nmrs]?)?|sin)\s+(?!(?:thanks?|problem\p{L}*|worries|now|not|way|need|longer|doubt|idea|matter|rush|wait|sorry|it|its|i|that|this|please|gracias|hay|sé|se|es|lo|la|puedo|danke|ahnung|thank|more|one|yet|he|she|they|we|you|just|can|could)\b)\S+(?:\s+\S+)?)$";

/// Without one of these nothing can fire. Linear in the length of the text; boundaries are ASCII's because Unicode's are
/// not linear and fast at once.
pub const QUICK: &str = r"(?-u:\b)not(?-u:\b)|n['’]?t(?-u:\b)|(?-u:\b)never(?-u:\b)|(?-u:\b)no(?-u:\b)|(?-u:\b)ni(?-u:\b)|instead|rather than|opposed|nicht|kein|statt|anstelle|en vez|en lugar|değil|istem|yerine|m[ae]y[ıi]n|(?:kle|koy|yaz|nder|tur|det|laş|yap|at|lla|lan|aç)m[ae]|لا|ليس|مو|مش|بدل|عوض|نه|نکن|نذار|نگذار|نفرست|ننویس|نزن|نساز|نمی|جای|[不别无非]";

/// What is counted as a word of what is left.
pub const WORD: &str = r"\p{Han}|[\p{L}\p{N}]+";
