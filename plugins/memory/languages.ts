/** The function words and the stemmers of the supported languages. */
import { stemmer as dutch } from '@orama/stemmers/dutch'
import { stemmer as english } from '@orama/stemmers/english'
import { stemmer as french } from '@orama/stemmers/french'
import { stemmer as german } from '@orama/stemmers/german'
import { stemmer as italian } from '@orama/stemmers/italian'
import { stemmer as portuguese } from '@orama/stemmers/portuguese'
import { stemmer as russian } from '@orama/stemmers/russian'
import { stemmer as spanish } from '@orama/stemmers/spanish'
import { stemmer as swedish } from '@orama/stemmers/swedish'

export interface Language {
	code: string
	stem(word: string): string
	/** Function words and question words. They identify the language of a text, and are not searched. */
	function_words: ReadonlySet<string>
}

function language(code: string, stem: (word: string) => string, words: string): Language {
	return { code, stem, function_words: new Set(words.split(/\s+/)) }
}

/** The stemmer makes "allergi" of allergy and "allerg" of allergic, "photographi" and "photograph" the same way. */
const longI = /(?<=.{4})i$/

/** The first one is the default. "may", "will" and "mark" are omitted from English: they are names, too. */
export const languages: readonly Language[] = [
	language(
		'en',
		(word) => english(word).replace(longI, ''),
		`a about after again ago all also always am an and any are aren as at away be because been before being between both
		but by ca can could couldn did didn do does doesn doing don done during each either else ever every few for from
		further get gets getting go goes going gone got had hadn has hasn have haven having he her here hers herself him
		himself his how however i if in into is isn it its itself just kind know let like lot made make makes many me mention
		mentioned might mine more most much must my myself need never no nor not now of off often oh ok okay on once one only
		or other our ours out over own please quite rather really s said same say says shall she should shouldn since so some
		something still such sure t than thank thanks that the their theirs them themselves then there these they thing things
		this those though through to too took tell told type under until up us use used using very want wanted was wasn way we
		well went were weren what whatever when where whether which while who whom whose why with within without wo would
		wouldn yeah yes yet you your yours yourself hey hi hello wow`,
	),
	language(
		'de',
		german,
		`aber alle allem allen aller alles als also am an andere anderen auch auf aus bei beim bereits bin bis bist da dabei
		dafür dagegen daher damit danach dann daran darauf darum das dass dein deine deinem deinen deiner dem den denn der
		deren des dessen dich die dies diese diesem diesen dieser dieses dir doch dort du durch ein eine einem einen einer
		eines einmal er es etwa etwas euch euer eure für gegen gibt habe haben hast hat hatte hatten hier hin hinter ich ihm
		ihn ihnen ihr ihre ihrem ihren ihrer im immer in ins ist ja jede jedem jeden jeder jedes jetzt kann kein keine keinem
		keinen keiner können könnte machen macht man manche mehr mein meine meinem meinen meiner mich mir mit möchte muss
		müssen nach nicht nichts noch nun nur ob oder ohne schon sehr sein seine seinem seinen seiner seit selbst sich sie
		sind so sogar solche soll sollen sollte sondern sonst über um und uns unser unsere unter viel viele vom von vor wann
		war waren warum was wegen weil welche welchem welchen welcher welches wenn wer werde werden wem wen wessen wie wieder
		wieso will wir wird wirst wo wofür woher wohin womit wurde wurden würde würden zu zum zur zwar zwischen`,
	),
	language(
		'fr',
		french,
		`ai aie aient ainsi alors après as au aucun aucune aujourd aura aurait aussi autre autres aux avaient avait avant avec
		avez avoir avons c ça car ce ceci cela celle celles celui ces cet cette ceux chaque chez combien comme comment d dans de
		depuis des donc dont du elle elles en encore entre est et étaient était étant été être eu eux faire fait fois font hui
		il ils j je jusque l la laquelle le lequel les lesquels leur leurs lors lorsque lui m ma mais me même mêmes mes moi moins
		mon n ne ni non nos notre nous on ont ou où par parce pas peu peut peux plus pour pourquoi pouvez puis qu quand que quel
		quelle quelles quels quelque quelques qui quoi s sa sans se sera serait ses si soi soit sommes son sont sous souvent
		suis sur t ta tandis te tes toi ton tous tout toute toutes très tu un une vers veut veux voici voilà vos votre vous y`,
	),
	language(
		'es',
		spanish,
		`a al algo alguien algún alguna algunas alguno algunos ante antes aquel aquella aquí así aún aunque bien cada casi como
		cómo con contra cosa cosas cual cuál cuales cuáles cualquier cuando cuándo cuanto cuánta cuántas cuánto cuántos de
		debe del desde donde dónde dos durante e el él ella ellas ellos en entre era eran es esa esas ese eso esos esta ésta
		está están estar estas este éste esto estos estoy fue fueron ha había han has hasta hay he hizo la las le les lo los
		luego mas más me menos mi mí mientras mis mucha muchas mucho muchos muy nada ni no nos nosotros nuestra nuestro o
		otra otras otro otros para pero poco por porque puede pueden pues que qué quien quién quienes se sea según ser si sí
		sido siempre sin sino sobre son soy su sus suyo también tampoco tan tanto te tenía tengo ti tiene tienen toda todas
		todavía todo todos tu tú tus un una unas uno unos usted ustedes va vamos y ya yo`,
	),
	language(
		'it',
		italian,
		`a abbia abbiamo ad agli ai al alcuna alcune alcuni all alla alle allo allora altra altre altri altro anche ancora avere
		aveva avevano c che chi ci ciò circa coi col come con contro così cosa cui d da dagli dai dal dall dalla dalle dallo
		degli dei del dell della delle dello dentro di dopo dove due durante e è ed era erano essere fa faccio fanno fare fatto
		fino fra fu gli ha hai hanno ho i il in io l la le lei li lo loro lui ma me mentre mi mia mie miei mio molta molte
		molti molto ne né negli nei nel nell nella nelle nello no noi non nostra nostre nostri nostro o ogni oppure per perché
		però più poco poi possono prima può qual quale quali qualche quando quanta quante quanti quanto quella quelle quelli
		quello questa queste questi questo qui quindi s se sei sempre senza si sia siamo siete solo sono sopra sotto sta stata
		state stati stato su sua sue sugli sui sul sull sulla sulle suo suoi t te ti tra tu tua tue tuo tuoi tutta tutte tutti
		tutto un una uno va vi voi vostra vostro`,
	),
	language(
		'pt',
		portuguese,
		`a à ao aos aquela aquele aqui as às assim até cada com como da daquele das de dela dele deles depois desde dessa desse
		desta deste do dos e é ela elas ele eles em então entre era eram essa essas esse esses esta está estão estas estava este
		estes estou eu faz fez foi foram há isso isto já lá lhe lhes mais mas me mesmo meu meus minha minhas muita muito muitos na
		nada não nas nem nessa nesta no nos nós nossa nosso nossos num numa o onde os ou para pela pelas pelo pelos por porque
		porquê pouco qual quais qualquer quando quanto quantos que quê quem são se seja sem sempre ser será seu seus si sido só
		sobre sua suas também tão te tem têm tenho ter teu tinha toda todas todo todos tu tua tudo um uma umas uns vai você
		vocês vos`,
	),
	language(
		'nl',
		dutch,
		`aan achter af al alle alleen als altijd andere bij daar dan dat de deze die dit doen door dus een eens en er ging had
		hadden heb hebben hebt heeft hem hen het hier hij hoe hoeveel hun iemand iets ik in is ja jaar je jij jou jouw kan kon
		kunnen maar me meer meest men met mij mijn moet moeten na naar niet niets nog nu of om omdat onder ons onze ook op over
		reeds te tegen toch toen tot tussen u uit uw van veel voor waar waarom wanneer want waren was wat we weer welk welke
		werd werden wie wij wil worden wordt zal ze zei zelf zich zij zijn zo zonder zou`,
	),
	language(
		'sv',
		swedish,
		`alla allt än är att av blev bli blir dä där därför de dem den denna deras dess dessa det detta dig din dina ditt då du
		efter ej eller en er ert ett för från göra gör ha hade han hans har hava henne hennes hon honom hur här i icke inom inte
		ja jag kan kunde man med mellan men mig min mina mitt mot mycket ni nu när någon något några och också om oss på sedan
		sig sin sina sitt själv ska skulle som så sådan till under upp ut utan vad var vara varför varit varje vars vart vem
		vems vi vid vilka vilken vilket vår våra vårt`,
	),
	language(
		'ru',
		russian,
		`а без более больше бы был была были было быть в вам вас весь во вот все всего всегда всех всю вы где да даже для до его
		ее если есть еще же за здесь и из или им иногда их к как какая какие какой когда конечно кто куда ли лучше между меня
		мне много может можно мой моя мы на над надо нас наш не него нее нет ни них но ну о об один он она они опять от очень
		перед по под после потом потому почему почти при про раз с сам свою себя сейчас со совсем так такой там тебя тем теперь
		то тогда того тоже только том тот ту ты у уж уже хотя чего чем через что чтобы чтоб эта эти это этого этой этом этот я`,
	),
]

/** The indexes in `languages` of those that have a function word. */
const placesOf = new Map<string, number[]>()
for (const [place, { function_words }] of languages.entries()) {
	for (const word of function_words) placesOf.set(word, [...(placesOf.get(word) ?? []), place])
}

/** The language with most function words among `words`; `fallback` unless another one has more. */
export function languageOf(words: readonly string[], fallback?: Language): Language | undefined {
	const counts = languages.map(() => 0)
	for (const word of words) {
		for (const place of placesOf.get(word) ?? []) counts[place] = (counts[place] as number) + 1
	}
	let best = fallback
	let most = fallback ? (counts[languages.indexOf(fallback)] as number) : 0
	for (const [place, count] of counts.entries()) if (count > most) [best, most] = [languages[place], count]
	return best
}
