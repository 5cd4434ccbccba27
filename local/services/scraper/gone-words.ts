/** How pages of one language say that a posting is gone. */
interface GoneWords {
  /** Nouns for a posting, and for its page. */
  postings: string;
  /** Phrases for what is out of reach; up to six words may stand between the noun and the phrase. */
  lost: string;
  /** Phrases for what is over, which are said of shops and doors too; up to two words may stand between. */
  ended: string;
  /** Phrases that need no noun. */
  alone?: string;
  /** Words before the noun that make the sentence a condition: the posting is still there. */
  unless: string;
}

const languages: Record<string, GoneWords> = {
  english: {
    postings: 'job|position|posting|vacancy|role|opportunity|listing|page|post|this|it',
    lost: 'is (?:sadly |unfortunately )?no longer (?:available|active|open|online|advertised|accepting applications)|no longer exists',
    ended:
      '(?:has|was|is) (?:now |already |since )?(?:been )?(?:removed|closed|filled|expired|deleted|withdrawn)(?! with )',
    alone: 'no longer accepting applications|sorry,? no longer available',
    unless: 'if|when|whenever|once|until|till|unless|as soon as|after|before',
  },
  german: {
    postings: 'stelle|stellenanzeige|stellenangebot|anzeige|job|position|inserat|ausschreibung|angebot|seite',
    lost: '(?:ist|steht) (?:leider )?(?:nicht (?:mehr|länger) (?:verfügbar|online|aktiv|offen|ausgeschrieben|zur verfügung)|offline)|existiert (?:leider )?nicht mehr',
    ended:
      '(?:ist|wurde) (?:leider |bereits |schon |inzwischen ){0,2}(?:besetzt|abgelaufen|vergeben|gelöscht|deaktiviert|entfernt|geschlossen|zurückgezogen)',
    unless: 'wenn|falls|sobald|bis|solange|sofern|nachdem|bevor',
  },
  french: {
    postings: 'offre|annonce|poste|emploi|page',
    lost: "n[’'](?:est|existe) (?:malheureusement )?plus(?: (?:disponible|en ligne|active?|actif|d[’']actualité|ouverte?|valable|publiée?|accessible))?",
    ended:
      '(?:a (?:déjà )?(?:expiré|été (?:retirée?|pourvue?|supprimée?|clôturée?|fermée?|désactivée?|archivée?))|est (?:désormais |maintenant |déjà )?(?:expirée?|pourvue?|clôturée?|close|archivée?))',
    unless: "si|quand|lorsque|dès que|une fois que|jusqu[’']à ce que|tant que|avant que",
  },
  spanish: {
    postings: 'oferta|vacante|empleo|puesto|anuncio|publicación|plaza|página',
    lost: 'ya no (?:está|se encuentra) (?:disponible|activ[ao]|vigente|abiert[ao]|publicad[ao])|ya no existe|no está ya disponible',
    ended:
      '(?:ha (?:caducado|expirado|finalizado|sido (?:eliminad[ao]|retirad[ao]|cerrad[ao]|cubiert[ao]|cancelad[ao]))|fue (?:eliminad[ao]|retirad[ao]|cerrad[ao]|cubiert[ao])|está (?:cerrad[ao]|caducad[ao]|cubiert[ao]|finalizad[ao]))',
    unless: 'si|cuando|una vez que|en cuanto|hasta que|mientras|antes de que',
  },
  portuguese: {
    postings: 'vaga|oferta|anúncio|emprego|oportunidade|posição|página',
    lost: '(?:já não|não) (?:está|se encontra) mais (?:disponível|ativ[ao]|abert[ao]|online|publicad[ao])|já não (?:está|se encontra) (?:disponível|ativ[ao]|abert[ao]|online|publicad[ao])|não existe mais|já não existe|não está mais aceitando candidaturas',
    ended:
      '(?:(?:já )?(?:foi|está) (?:encerrad[ao]|removid[ao]|preenchid[ao]|expirad[ao]|fechad[ao]|eliminad[ao]|excluíd[ao]|cancelad[ao])|(?:já )?expirou)',
    unless: 'se|quando|assim que|até que|caso|enquanto|depois que|antes que',
  },
  italian: {
    postings: 'offerta|annuncio|posizione|inserzione|pagina|posto',
    lost: 'non (?:è|risulta) più (?:disponibile|attiv[ao]|online|apert[ao]|valid[ao]|visibile|pubblicat[ao])|non esiste più',
    ended:
      '(?:è (?:già )?scadut[ao]|è (?:già )?stat[ao] (?:rimoss[ao]|chius[ao]|eliminat[ao]|copert[ao]|cancellat[ao]|ritirat[ao]))',
    unless: 'se|quando|una volta che|non appena|finché|qualora|prima che',
  },
  dutch: {
    postings: 'vacature|functie|advertentie|pagina|baan|job',
    lost: '(?:is|staat) (?:helaas )?niet (?:meer|langer) (?:beschikbaar|actief|online|geldig|open|actueel)|bestaat (?:helaas )?niet (?:meer|langer)',
    ended: 'is (?:helaas |inmiddels |reeds |al ){0,2}(?:vervuld|gesloten|verlopen|verwijderd|ingevuld)',
    unless: 'als|wanneer|zodra|totdat|indien|tot|voordat|nadat',
  },
  polish: {
    postings: 'oferta|ogłoszenie|stanowisko|rekrutacja|strona',
    lost: '(?:nie jest już|już nie jest) (?:dostępn[aey]|aktualn[aey]|aktywn[aey])|jest (?:już )?(?:nieaktualn[aey]|nieaktywn[aey]|niedostępn[aey])|już nie istnieje',
    ended:
      '(?:(?:została|zostało) (?:już )?(?:usunięt[aey]|zamknięt[aey]|zakończon[aey]|wycofan[aey]|zarchiwizowan[aey])|(?:już )?wygasł[ao])',
    unless: 'jeśli|jeżeli|gdy|kiedy|dopóki|aż|zanim',
  },
  swedish: {
    postings: 'jobbet|jobb|annonsen|platsannonsen|tjänsten|sidan|rollen',
    lost: 'är (?:tyvärr )?(?:inte|ej) längre (?:tillgänglig|tillgängligt|aktiv|aktivt|aktuell|aktuellt|öppen|publicerad)|finns (?:tyvärr )?(?:inte|ej) (?:längre|kvar)',
    ended:
      '(?:har (?:redan |nu )?(?:tagits bort|tillsatts|stängts|avpublicerats|utgått|gått ut)|är (?:redan |nu )?(?:tillsatt|borttagen|avpublicerad))',
    unless: 'om|när|så snart|tills|ifall|innan|efter att',
  },
  danish: {
    postings: 'jobbet|job|jobopslaget|jobannoncen|stillingen|annoncen|opslaget|siden',
    lost: 'er (?:desværre )?ikke længere (?:tilgængelig|tilgængeligt|aktiv|aktivt|aktuel|aktuelt|åben|åbent|ledig|ledigt)|(?:findes|eksisterer) (?:desværre )?ikke (?:længere|mere)',
    ended: 'er (?:desværre |allerede |nu )?(?:blevet )?(?:fjernet|besat|lukket|udløbet|slettet)',
    unless: 'hvis|når|så snart|indtil|såfremt|før|efter at',
  },
  turkish: {
    // İ is no i to a pattern that takes capitals for small letters.
    postings: '[iİ]lanı?|pozisyonu?|sayfa',
    lost: '(?:artık )?(?:yayında|mevcut|aktif|geçerli) değil(?:dir)?|yayından (?:kaldırıldı|kaldırılmış|kaldırılmıştır|kalkmıştır)',
    ended:
      '(?:kaldırıldı|kaldırılmıştır|kapandı|kapanmıştır|kapatıldı|kapatılmıştır|sona erdi|sona ermiştir|süresi (?:doldu|dolmuştur))',
    unless: 'eğer|şayet',
  },
  japanese: {
    postings: '求人|募集|案件|お仕事|ポジション|ページ|掲載',
    lost: '(?:終了|削除)(?:しました|しています|いたしました|されました|されています)(?!ら)|締め切(?:りました|られました)(?!ら)|存在しません',
    ended: '',
    unless: 'もし',
  },
  chinese: {
    postings: '职位|職位|职缺|職缺|岗位|崗位|招聘|页面|頁面',
    lost: '已(?:经|經)?被?(?:下线|下線|关闭|關閉|删除|刪除|过期|過期|下架|结束|結束|失效|停止招聘|招满|招滿|截止|移除)(?![的后後时時前])|不存在|不再(?:招聘|开放|開放)',
    ended: '',
    unless: '如果|若|一旦|直到|假如',
  },
  korean: {
    postings: '채용|공고|포지션|모집|페이지',
    lost: '(?:마감|종료|삭제|만료)(?:되었|됐)습니다|존재하지 않습니다|더 이상 [^\\s.]+ 않습니다',
    ended: '',
    alone: '(?:마감|종료|삭제|만료)된 (?:채용 ?)?(?:공고|포지션|페이지)입니다',
    unless: '만약',
  },
};

/** Scripts that part no words by blanks, or write what belongs to a noun onto it. */
const unparted = new Set(['japanese', 'chinese', 'korean']);

const word = (part: string) => `(?<![\\p{L}\\p{M}])(?:${part})(?![\\p{L}\\p{M}])`;
const between = (most: number) => `(?: [^\\s.!?:;,]+){0,${most}}? `;

/** For each language what says that a posting is gone, and what before it takes that back. */
const notices = Object.entries(languages).map(([language, { postings, lost, ended, alone, unless }]) => {
  const ways = unparted.has(language)
    ? [`(?:${postings})[^.。！!？?，、\\n]{0,12}?(?:${lost})`]
    : [`${word(postings)}${between(6)}${word(lost)}`, `${word(postings)}${between(2)}${word(ended)}`];
  const condition = unparted.has(language) ? unless : word(unless);
  return {
    gone: new RegExp([...ways, ...(alone ? [alone] : [])].join('|'), 'giu'),
    condition: new RegExp(`(?:${condition})[^.。!！?？]*$`, 'iu'),
  };
});

/** How many characters before a phrase are searched for a condition. */
const reach = 100;

/**
 * Whether a page's text says that the posting which it was about is gone, in one of the languages of the boards that are read
 * most. A condition says nothing: "until the position has been filled".
 */
export function saysGone(text: string): boolean {
  return notices.some(({ gone, condition }) =>
    [...text.matchAll(gone)].some(({ index }) => !condition.test(text.slice(Math.max(0, index - reach), index))),
  );
}
