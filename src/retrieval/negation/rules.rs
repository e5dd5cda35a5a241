//! The rules of negation as data: what begins, ends or stands inside a clause
//! that rules something out, in English, German, Spanish, French, Turkish,
//! Arabic, Persian and Chinese. NOT how they are applied.
//!
//! Each is a pattern without regard to case. What must stay is named in look-aheads: hedges ("I can't remember"),
//! "don't forget", negated arguments ("no other houses", "don't include archived ones").

/// Where clauses end, with the space behind. The second line: a conjunction with a negated order behind it begins a
/// clause of its own ("move it to won but don't tell the team").
pub const BOUNDARY: &str = concat!(
    r"(?:[,;:.!?…\n،؛؟。，；：！？]+(?=\s|$|\p{Han})|[，،؛؟。；：！？—–\n]|\s-{1,2}\s|\((?=\s*not\b)",
    r"|\s(?=(?:but\s+(?:please\s+|just\s+)*(?:do not|don['’]?t|never)\s|and\s+(?:please\s+|just\s+)*(?:do not|don['’]?t|never)\s+(?:e?-?mail|put|make|use|look|search|text|call|messag|tell|notify|alert|post|send|creat|delet|remov|open|shar|invit|add|schedul|chang|touch|edit|updat|mov|archiv|ping|book|writ|log|forward|assign|remind|bother)))",
    r"|\s(?=(?:pero|y)\s+no\s+(?!en\b|a\b|al\b|por\b|con\b|como\b|una?\b))",
    r"|\s(?=(?:mais|et)\s+(?:surtout\s+)?(?:ne\s|n['’]))",
    r"|\s(?=(?:ama|fakat|ancak)\s[^,;:.!?\n]*m[ae](?:y[ıi]n(?:[ıi]z)?)?\s*(?:$|[,;:.!?\n]))",
    r"|\s(?=(?:ولی|اما|و)\s[^،,.!؟\n]*\sن\p{L}+\s*(?:$|[،,.!؟\n]))",
    r"|\s(?=(?:(?:بس|لكن|ولكن)\s+)?و?لا\s+ت|(?:بس|لكن)\s+ما?\s?ت\p{L}+ش(?:\s|$))",
    r"|(?=但是?(?:别|不要|不用)))\s*",
);

/// Words that may stand before a cue at the head of a clause.
pub const FILL: &str = r"^\s*(?:(?:(?:and|but|so|please|also|then|ok|okay|well|y|e|pero|por favor|und|aber|auch|bitte|mais|et|surtout|stp|svp|s['’]il (?:te|vous) plaît|ve|ama|lütfen)\b|ولكن|لكن|بس\s|من فضلك|رجاء|ولی|اما|لطفاً|لطفا|و|请|麻烦|但是|但|不过|也|都|并且|并|而且|那就|那|千万|先|就)[\s,]*)*";

/// The clause begins with it, or with [`FILL`] and it: the clause goes.
pub const HEADS: &[&str] = &[
    // English: a verb follows, and not one that hedges, reminds, or says what a list shall hold
    r"(?:do not|don['’]?t|never)\s+(?!forget|hesitat|worry|know|remember|recall|see\b|have\b|think|miss\b|mind\b|understand|let\b|you\b|we\b|i\b|they\b|stop|lose|bother asking|even\b|want\b|need\b|care|get\b|recogni|find\b|like\b|feel\b|includ|show\b|display|count\b|list\b|return\b|exceed)\p{L}+",
    r"never mind\s+(?:the|my|that|this)\b",
    r"(?:i|we)\s+(?:do not|don['’]?t)\s+(?:want|need)\s+(?!.*\b(?:miss|forget|lose|late|overlook|know|see)\b)\p{L}+",
    r"you\s+(?:do not|don['’]?t)\s+(?:have|need)\s+to\s+(?!worry|rush|hurry|know\b)\p{L}+",
    r"(?:there(?:['’]s| is)\s+)?no need\s+(?:to|for)\s+(?!worry|rush|hurry|panic|stress|apologi|thank)\p{L}+",
    r"(?:but\s+)?not\s+(?:in|on|to|as|via|by|from|through|into|an?|my|the|another|using|with)\b(?!\s+(?:moment|least|all|time|same|case|way|sure)\b)",
    // "in Slack, not Teams": a proper name, or what such tools make
    r"not\s+(?:(?-i:\p{Lu})[\p{Ll}\p{N}]+|e-?mails?|mail|texts?|sms|messages?|tickets?|tasks?|to-?dos?|reminders?|events?|invites?|meetings?|calls?|notes?|comments?|chats?|docs?)\s*$",
    r"(?:instead of|rather than|as opposed to)\b",
    r"without\s+(?:e?-?mail|text|call|messag|tell|notify|alert|post|send|creat|delet|remov|open|shar|invit|add|schedul|chang|touch|edit|updat|mov|archiv|ping|book|writ|log|forward|assign|remind|bother)\p{L}*ing\b",
    // German
    r"nicht\s+(?:in|im|ins|auf|aufs|an|ans|am|per|über|mit|als|bei|beim|via|zu|zur|zum|unter)\b",
    r"(?:ich|wir)\s+(?:möchte|will|brauche|wollen|möchten|brauchen)\s+(?:kein\p{L}*|nicht)\b(?!.*\b(?:verpass|vergess|verlier))",
    r"(?:du|ihr|sie)\s+(?:brauchst|braucht|brauchen|musst|müsst|müssen)\s.*\b(?:nicht|kein(?:e[nmrs]?)?)\b",
    r"(?:anstatt|statt|anstelle)\b(?=.*\bzu\s+\p{L}+$)",
    r"ohne\s+(?:\p{L}+\s+){0,4}?(?:zu\s+|\p{L}+zu)(?:(?:be|ver|an|ab)?(?:schreib|ruf|schick|send|benachrichtig|mail|lösch|änder|teil|lad|leg|erstell|post|verschieb|öffn|trag|inform|stör|erinner|archivier))\p{L}*n\b",
    r"nicht\s+(?!vergess|verpass|verlier|zöger|wunder|erschreck)\p{L}+e?n\s*$",
    // German: an order to do none of it ("schick keine Mail"); not a statement, a question or what a list shall hold
    r"(?!(?:aber|und|oder|nur|bitte|also|auch|doch|denn|ich|wir|es|das|der|die|er|sie|man|du|ihr|da|hier|wo|was|wer|wann|warum|wieso|wie|welche\p{L}*|gibt|gab|hat|habe|haben|hatte|hatten|ist|sind|war|waren|wird|werden|kann|können|mit|zeig\p{L}*|find\p{L}*|such\p{L}*|nenn\p{L}*|list\p{L}*|nimm|berücksichtig\p{L}*|verlier\p{L}*|verpass\p{L}*)\b)\p{L}{3,}\s+(?:(?:mir|ihm|ihr|ihnen|uns|dafür|davon|dazu|daraus|bitte|jetzt|da)\s+){0,2}(?:kein(?:e[nmrs]?)?|nichts)(?![\p{L}\p{N}-])",
    // Spanish: the second person of the subjunctive
    r"no\s+(?:(?:lo|la|los|las|le|les|me|nos|te|se)\s+){0,2}(?!olvid|tienes|tienen|puedes|pueden|sabes|saben|estás|estas|están|eres|encuentras|encuentran|dudes|dejes|pierdas|recuerdas|recuerdan|quieres|entiendes|entiendas|es\b|existen|aparecen|funcionan|las\b|les\b|los\b|incluy|muestr|cuent|list|pases\b|tardes|preocup)\p{L}+(?:es|as|éis|áis)\b",
    r"(?:no|ni|tampoco)\s+(?:en|a|al|por|con|como|un|una)\b",
    r"no\s+(?:quiero|necesito|queremos|necesitamos)\b(?!.*\b(?:perder|olvid|llegar tarde|se me))",
    r"no\s+(?:hace falta|es necesario|tienes que|necesitas|hay que)\b(?!.*\b(?:preocup|corr|disculp))",
    r"nada de\s+(?!eso\b|esto\b|nada\b)\p{L}+",
    r"sin\s+(?:cre|mand|envi|escrib|llam|avis|borr|compart|invit|añad|agreg|cambi|toc|public|abr|mov|notific|elimin|archiv|molest|edit)\p{L}*(?:ar|er|ir)(?:l[aeo]s?|me|nos|se)?\s+(?=.)",
    r"(?:en vez de|en lugar de)\b",
    // French: an order has no subject before "ne"; "ne … que" is no negation
    r"(?:ne\s+|n['’])(?:(?:me|te|le|la|les|lui|leur|en|y|nous)\s+|[lmt]['’])*(?!oubli|inclu|montr|affich|compt|list|inquiét|hésit|perd|manqu|rat|dépass|tard)\p{L}+\s+(?:surtout\s+)?(?:pas|plus|rien|aucune?)\b",
    r"(?!(?:oubli|inclu|montr|affich|compt|list|inquièt|hésit|perd|manqu|trouv|sai|pourquo|êtes|sommes|suis|vois|peux|reste|existe|marche|fonctionne)\p{L}*)\p{L}{3,}[esz]\s+pas\s+(?:de\b|d['’]|l[ea]s?\b|l['’]|une?\b|ça\b|cet?t?e?\b|au\b|par\b|sur\b|mon\b|ma\b|mes\b)",
    r"(?:mais\s+)?pas\s+(?:dans|par|sur|en|à|au|aux|via|avec|une?)\b(?!\s+(?:retard|ce moment|temps|pas\b|même|tout))",
    r"(?:ce n['’]est |c['’]est |n['’]est )?(?:pas (?:besoin|la peine|nécessaire)|inutile)\s+(?:de\b|d['’]|que\b|qu['’])(?!\s*(?:s['’]inqui|t['’]inqui|vous inqui|se press|s['’]excus))",
    r"(?:je|on|nous)\s+(?:ne\s+|n['’])?(?:(?:veux|veut|voulons|souhaite|voudrais)\s+pas|ai\s+pas\s+besoin)\b(?!.*\b(?:oubli|rat|manqu|perd|retard))",
    r"(?:au lieu d|plutôt qu)\p{L}*\b",
    r"sans\s+(?:(?:le|la|les|lui|leur)\s+|l['’])?(?:préven|notifi|envoy|écri|appel|cré|supprim|partag|invit|ajout|chang|modifi|touch|publi|ouvr|déplac|archiv|relanc|rappel|dérang)\p{L}*(?:er|ir|re)\b",
    // Arabic: the formal order, the dialects' wishes, Egypt's "ma…sh"
    r"و?لا\s+ت(?!نس|تردد|قلق|دع|زال|وجد|ظهر|عمل|حتو|حوي|ذكر|عرف|هتم|خف|كفي|صل|شمل|تضمن|ضمن|عرض|حسب|درج|تجاوز|زيد|حتاج|خل|فوت|ضيع|ملك)\p{L}+",
    r"و?(?:ليس|ليست|مو|مش|مب|لا)\s+(?:(?:في|إلى|الى|على|عبر|من)\b|بال\p{L}+)",
    r"و?لا\s+(?:أريد|اريد|نريد)\b(?!.*(?:يفوت|أنس|انس))",
    r"(?:ما\s?(?:بدي|بدنا|أبي|ابي|نبي|أبغى|ابغى|نبغى|ودي|أريد|اريد|نريد)|(?:مش|مو|مب)\s+(?:عايز|عايزة|عاوز|عاوزة|عايزين|حابب|محتاج|محتاجة|محتاجين|لازم|ضروري)\p{L}{0,3}|لست بحاجة)\b(?!.*(?:يفوت|أنس|انس|أضيع|اضيع|تأخر))",
    r"(?:(?:لا|ما في|مافي|مفيش|ما فيش|ما له|مالوش|ما كو|ماكو)\s+(?:داعي|حاجة|لزوم|ضرورة)|ما يحتاج|لا يلزم|ليس من الضروري)\b(?!\s*(?:للقلق|للاستعجال|تقلق|لل?شكر))",
    r"(?:م|ما\s?)ت(?!نسا|نسي|قلق|خاف|خليه|خلي|سيب|تأخر|زعل|فكر|عرف|ستعجل|ضيع|فوت)\p{L}{2,}ش\b",
    r"ما\s+ت(?:بعت|بعث|رسل|كتب|حط|فتح|مسح|شيل|حذف|خبر|حكي|قول|دق|تصل|سوي|نشر|شارك|ضيف|غير|عدل|نقل|لغي|سكر|دز)\p{L}{0,4}\b",
    r"بلاش\s+\p{L}+",
    r"بدلا?[ًاّ]*\s+(?:من|عن)\b|عوضا?[ًا]*\s+عن\b|بدل\s+(?:ما\b|ال(?!سكن|نقل|مواصلات|سفر|غذاء|إجار|ايجار)\p{L}+)",
    r"(?:من غير|بدون)\s+ما\s|(?:دون|بدون)\s+أن\s",
    // Persian
    r"نه\s+(?:در|به|از|با|برای|توی|تو|روی|واسه)\b",
    r"(?:لازم|نیازی|احتیاجی|ضروری)\s+نیست\b(?!.*(?:نگران|عجله))",
    r"نمی[\x{200C} ]?خوا(?:م|هم|یم|هیم)\s+(?!.*(?:فراموش|یادم بره|از دست|گم ))\S+\s",
    // Chinese
    r"(?:我们?|你们?|您|咱们?)?(?:先|就|都|也|还)?(?:不要|别(?![人的处名墅针具样离说称号致])|甭|不用|不必|无需|无须|不需要|用不着|不想|没有?必要)(?!.{0,3}(?:忘|错过|担心|客气|着急|丢|包含|包括|显示|列出|算上|计入|超过))",
    r"不在(?![线职场家乎意])|(?:而不是|而非|不是)",
];

/// In [`HEADS`] these two need the next clause to go on with [`BUT_RATHER`], unless it is the second.
pub const IS_NOT: &str = "不是";
pub const AND_IS_NOT: &str = "而不是";

/// The next clause says what it is instead.
pub const BUT_RATHER: &str = r"^\s*(?:而?是|要)";

/// Inside what a head rules out, the ask goes on behind this.
pub const GOES_ON: &str = r"\s(?:and|y|und|et)\s+(?:(?:instead|en su lugar|stattdessen|à la place)\s+|(?P<on>(?:just|please|then|only|solo|nur|bitte)\s))";

/// The clause ends with it (verbs stand last): the whole clause goes, where another follows or it opens with
/// [`CONTRAST`].
pub const TAILS: &[&str] = &[
    // Turkish
    r"(?:değil|istemiyorum|istemem|istemiyoruz|istemez)\s*$",
    r"(?:gerek|lüzum|ihtiyaç)\s+(?:yok|kalmadı)\s*$|gerek(?:mez|miyor)\s*$",
    // German: "lösch den Kunden nicht", "den Kunden nicht löschen"
    r"^\s*(?:(?:aber|und|doch|bitte|auch)\s+)*(?!(?:ich|wir|es|das|der|die|er|sie|man|du|ihr|da|hier|dort|wo|was|wer|wann|warum|wieso|wie|welche\p{L}*|wenn|weil|dass|ob|falls|mir|mich|uns|gibt|hat|habe|haben|ist|sind|war|waren|wird|kann|können|geht|klappt|stimmt|vergiss|vergesst|verpass\p{L}*|verlier\p{L}*|zeig\p{L}*|liste?|nimm|weiß|weiss|keine?)\b)\p{L}{3,}\s(?:.*\s)?nicht(?:\s+(?:raus|ab|weg|auf|an|zu|um|ein|aus|mit|los|weiter|rum|vor|rein|(?!vergess|verpass|verlier)\p{L}+e?n))?\s*$",
    // Persian and Chinese: "instead of …, …"
    r"^\s*(?:به جای|بجای|به\x{200C}جای)\s.*$",
    r"^\s*与其.*$",
];

/// Opens a clause that contrasts with the one before it.
pub const CONTRAST: &str = r"^\s*(?:ama|fakat|ancak|ve|aber|und|doch|ولی|اما|و)\s";

/// The same, where any other clause stands beside it: an order not to do it.
pub const ORDERS: &[&str] = &[
    // Turkish. "-meyin" is an order whatever the verb; "-me" is also a noun ("ekleme": adding), so verbs and what stands
    // before them are named
    r"(?<!merak )(?<!dahil )(?<!kusura )(?<!endişe )(?!unut|kaybet|kaçır|merak|endişe|göster|listele|çekin)\b\p{L}+m[ae]y[ıi]n(?:[ıi]z)?\s*$",
    r"(?!.*\b(?:dahil|merak|acele|ihmal)\s+etme)(?:\S\s+\S+|\S['’]\p{L}+|[yaeıiuü]|^\s*(?:mail|e-?posta|mesaj|sms|görev|not|toplantı|kayıt|hatırlatma|etkinlik|talep|bilet|teklif|rapor|takip|iptal)|\s(?:mail|e-?posta|mesaj|sms|görev|not|toplantı|kayıt|hatırlatma|etkinlik|talep|bilet|teklif|rapor|takip|iptal))\s+(?:ekle|koy|yaz|gönder|aç|oluştur|kaydet|paylaş|yap|at|yolla|kullan|sil|ara|taşı|kur|ilet|çağır|bildir|değiştir|kapat|kaldır|aktar|çıkar|indir|yükle|düzenle|güncelle|arşivle|söyle|taşı|et)m[ae]\s*$",
    // Persian
    r"(?<!فراموش\s)(?<!حساب\s)(?<!شامل\s)(?<!لحاظ\s)(?<!گم\s)(?<!فکر\s)(?<!نشون\s)(?<!نشان\s)(?<!نمایش\s)(?<!راه\s)\b(?:نکن|نذار|نگذار|نفرست|ننویس|نزن|نساز|نگیر|نده|نبر|ننداز|نریز|نخون|نگو|نگوی|نپرس|نخر)(?:ید|ین)?\s*$",
    r"نمی[\x{200C} ]?(?:خواهم|خوام|خواهیم|خوایم)\s*$",
];

/// It stands inside a clause: from there to its end it goes.
pub const MIDDLES: &[&str] = &[
    r"\s(?:instead of|rather than|as opposed to)\s.*$",
    r"\swithout\s+(?:e?-?mail|text|call|messag|tell|notify|alert|post|send|creat|delet|remov|open|shar|invit|add|schedul|chang|touch|edit|updat|mov|archiv|ping|book|writ|log|forward|assign|remind|bother)\p{L}*ing\s.*$",
    r"\s(?:en vez de|en lugar de)\s.*$",
    r"\s(?:anstatt|anstelle)\s.*$",
    r"\sohne\s+(?:\p{L}+\s+){0,4}?(?:zu\s+|\p{L}+zu)(?:(?:be|ver|an|ab)?(?:schreib|ruf|schick|send|benachrichtig|mail|lösch|änder|teil|lad|leg|erstell|post|verschieb|öffn|trag|inform|stör|erinner|archivier))\p{L}*n\s*$",
    r"\s(?:au lieu d|plutôt qu)(?:e\s|['’]).*$",
    r"\ssans\s+(?:(?:le|la|les|lui|leur)\s+|l['’])?(?:préven|notifi|envoy|écri|appel|cré|supprim|partag|invit|ajout|chang|modifi|touch|publi|ouvr|déplac|archiv|relanc|rappel|dérang)\p{L}*(?:er|ir|re)\s.*$",
    r"\s(?:بدلا?[ًا]*\s+(?:من|عن)|عوضا?[ًا]*\s+عن|بدل\s+ال(?!سكن|نقل|مواصلات|سفر|غذاء|إجار|ايجار)\p{L}+)(?:\s.*)?$",
    r"\s(?:(?:من غير|بدون)\s+ما|(?:دون|بدون)\s+أن)\s.*$",
    r"(?:而不是|而非).*$",
];

/// "in Drive and not in my mail": a preposition, negated; it goes when the same stands before it.
pub const AND_NOT: &str = r"\s(?:and not|but not|y no|pero no|und nicht|aber nicht|et pas|mais pas|و?لا|وليس|و\s+لا|و?نه|و\s+نه|ve)\s+(in|on|to|via|by|en|a|por|im|auf|an|per|dans|sur|par|à|في|إلى|على|در|به|از|با|توی|تو|برای)\b";

/// What goes with the words it stands behind, or (German "statt", Persian "به جای", Chinese "而非") before.
pub const SPANS: &[&str] = &[
    r"^.*?m[ae]k\s+yerine\b",
    r"\S+\s+yerine\b(?!\s+(?:getir|koy))",
    r"\S+(?:\s+d[ae])?\s+değil\b(?=\s+\S)",
    r"(?:^|\s)statt\s+(?:(?:eine[rsnm]?|des|der|dem|den)\s+)?\S+",
    r"(?:به جای|بجای|به\x{200C}جای)\s+(?:(?:یک|یه|این|آن|اون)\s+)?\S+(?:\s+(?:زدن|کردن|فرستادن|دادن|گذاشتن|نوشتن|ساختن))?(?=\s+\S)",
    r"而(?:不是|非)(?:用|通过|发|打|在)?(?:电子邮件|邮件|邮箱|微信|短信|飞书|钉钉|电话|日历|任务|群里?|云盘|网盘|表格|便签)(?=\p{Han})",
];

/// "not by mail but on Slack": it goes up to and with the word that says what is meant instead.
pub const THROUGH: &[&str] = &[
    r"^\s*not\s+(?:in|on|to|as|via|by|from|through|into|an?|the|my)\s[^,]*?\sbut\s+(?:rather\s+)?",
    r"^\s*no\s+.*?\ssino\s+(?:que\s+)?",
    r"^\s*pas\s+(?:dans|par|sur|en|à|au|via|une?)\s.*?\smais\s+(?:plutôt\s+)?",
    r"^\s*(?:ليس|مش|مو)\s+.*?\s(?:بل|لكن)\s+",
    r"^\s*نه\s+.*?\sبلکه\s+",
];

/// German "nicht A, sondern B": with the second in the next clause, the first goes, and that word.
pub const RATHER: &str = r"^\s*(?:sondern|stattdessen|lieber)\b";
pub const NOT: &str = r"\b(?:nicht|kein(?:e[nmrs]?)?)\b.*$";

/// "no calendar entry," before what is wanted; not "no problem".
pub const NO: &str = r"^\s*(?:(?:(?:no|kein(?:e[nmrs]?)?|sin|pas de|aucune?)\s+|pas d['’])(?!(?:thanks?|problem\p{L}*|problème|souci|panique|idée|worries|now|not|way|need|longer|doubt|idea|matter|rush|wait|sorry|it|its|i|that|this|please|gracias|hay|sé|se|es|lo|la|puedo|danke|ahnung|thank|more|one|yet|he|she|they|we|you|just|can|could)\b)\S+(?:\s+\S+)?)$";

/// Without one of these nothing can fire. Linear in the length of the text; boundaries are ASCII's because Unicode's are
/// not linear and fast at once.
pub const QUICK: &str = r"(?-u:\b)not(?-u:\b)|n['’]?t(?-u:\b)|(?-u:\b)never(?-u:\b)|(?-u:\b)no(?-u:\b)|(?-u:\b)ni(?-u:\b)|instead|rather than|opposed|without|nicht|kein|statt|anstelle|(?-u:\b)ohne(?-u:\b)|en vez|en lugar|nada de|tampoco|(?-u:\b)sin(?-u:\b)|(?-u:\b)pas(?-u:\b)|(?-u:\b)plus(?-u:\b)|(?-u:\b)rien(?-u:\b)|aucun|au lieu|plutôt|inutile|(?-u:\b)sans(?-u:\b)|değil|istem|yerine|m[ae]y[ıi]n|gerek|lüzum|ihtiyaç|\p{L}m[ae]\s*(?:$|[,;:.!?\n])|لا|ليس|ما|مو|مش|مب|ش(?:\s|$)|لست|مفيش|بدل|عوض|بدون|دون|غير|نه|نیست|نکن|نذار|نگذار|نفرست|ننویس|نزن|نساز|نگیر|نده|نبر|ننداز|نریز|نخون|نگو|نپرس|نخر|نمی|جای|[不别无非甭没]|与其";

/// What is counted as a word of what is left.
pub const WORD: &str = r"\p{Han}|[\p{L}\p{N}]+";
