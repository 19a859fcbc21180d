/** Model output is shown, and has no other effect. */
import fc from 'fast-check'
import { Marked } from 'marked'
import type { Token } from 'marked'
import t from 'tap'
import { safeMarkdown } from '../../../plugins/telegram/markdown.ts'
import { assertCpuTime } from '../../support/cpu-time.ts'

void t.test('images become links, HTML becomes text', async (t) => {
	const cases: [string, string][] = [
		['![a](https://x/?s=1)', '[a](https://x/?s=1)'],
		['![](https://x)', '[image](https://x)'],
		['!![a](u)', '[a](u)'],
		['!![](u)', '[image](u)'],
		['a <img src="https://x"> b', 'a &lt;img src="https://x"> b'],
		[
			'<tg-button type="url" url="https://x">go</tg-button>',
			'&lt;tg-button type="url" url="https://x">go&lt;/tg-button>',
		],
		['\\<b>', '\\<b>'],
		['\\\\<b>', '\\\\&lt;b>'],
		['| a<br>b |', '| a<br>b |'],
		// A <br> alone on a line would begin an HTML block, up to the blank line, and the image would remain.
		['<br>\n~~~\n\n![a](u)', '&lt;br>\n~~~\n\n![a](u)'],
		['1 < 2', '1 &lt; 2'],
	]
	for (const [text, safe] of cases) t.equal(safeMarkdown(text), safe, text)
})

void t.test('ordinary answers stay as they are', async (t) => {
	const kept = [
		'# T\n\n**b** _i_ ~~s~~ [l](https://x) `Array<string>` and ``a ` <b>``',
		'```ts\nconst a: Array<string> = []\n![x](y)\n```\n\nend',
		'~~~\n<a>\n```\n<b>\n~~~',
		'````md\n```\n<a>\n```\n````',
		'1. a\n   ```sh\n   x\n\n   ```\n2. b\n\n```html\n<br>\n<b>\n```\n\n`<b>` for $5 and `![a](u)`',
		'> quote\n\n- a\n- b\n\n1. c\n\n| a | b |\n|---|---|\n| 1 | 2 |',
		'',
	]
	for (const text of kept) t.equal(safeMarkdown(text), text)
})

void t.test('HTML in text that only looks like code is escaped', async (t) => {
	const evil = '<img src=x>'
	const cases = [
		`\`\n${evil} \` x`,
		`a \` b\n\`${evil}\``,
		`\\\`${evil}\``,
		`| \`a | ${evil} \` |`,
		`- a\n  \`\`\`\n${evil}\n`,
		`> \`\`\`\n${evil}`,
		`\`\`\`a\`\n${evil}`,
		`\`\`\`\n\`\`\`\n${evil}`,
		`~~~ ~~~\n~~~\n${evil}`,
		`~~~\r~~~\r${evil}`,
		`~~~\r\n~~~\r\n${evil}\r\n~~~`,
		`~~~\u2028~~~\u2028${evil}`,
		`~~~\n~~~\u00a0\n~~~\n${evil}`,
		`~~~\n    ~~~\n~~~\n${evil}`,
		` ~~~\n~~~\n${evil}`,
		`~\u202a~~\n~~~\n${evil}`,
		`a\n2. ~~~\n   ~~~\n~~~\n${evil}`,
		`- ~~~\nb\n  ~~~\n~~~\n${evil}`,
		`a \` b\n\u00a0\n\` ${evil} \``,
		`$$\n~~~\n$$\n${evil}`,
		`$\`$ ${evil} \``,
	]
	for (const text of cases) t.match(safeMarkdown(text), '&lt;img', encodeURIComponent(text))
})

void t.test('a parser finds no image and no HTML in the result', async () => {
	const marked = new Marked({ gfm: true })
	const pieces = [
		'`',
		'``',
		'```',
		'~~~',
		'\n',
		'\n\n',
		'\r',
		'\r\n',
		'\u00a0',
		'\\',
		'<b>',
		'<img src=x>',
		'![a](u)',
		'![',
		'!',
		'[',
		']',
		'(u)',
		'|',
		'- ',
		'> ',
		'    ',
		'1. ',
		'<br>',
		'a',
		' ',
	]
	const text = fc.array(fc.constantFrom(...pieces), { maxLength: 24 }).map((parts) => parts.join(''))
	fc.assert(
		fc.property(text, (given) => {
			const found: string[] = []
			void marked.walkTokens(marked.lexer(safeMarkdown(given)), (token: Token) => {
				const isBreak = /^<br>$/.test(token.raw)
				if ((token.type === 'html' && !isBreak) || token.type === 'image') found.push(token.raw)
			})
			return found.length === 0 && !/[\r\u2028]/.test(safeMarkdown(given))
		}),
		{ numRuns: Number(process.env.MARKDOWN_RUNS ?? 200) },
	)
})

void t.test('conversion takes linear time', async (t) => {
	for (const piece of [
		'`',
		'`` ',
		'\\',
		'!',
		'!!![',
		'<',
		'` `',
		'~',
		'\\<',
		'``` `',
		'|`|',
		' ',
		'$`',
		'~ ',
		'\r',
		'   ```\r',
	]) {
		const textOf = (length: number): string => piece.repeat(Math.ceil(length / piece.length))
		const [short, long] = [textOf(20_000), textOf(320_000)]
		// The same amount of text at once and in sixteen pieces: quadratic time would be sixteen times as much.
		await assertCpuTime(t, JSON.stringify(piece), {
			work: () => safeMarkdown(long),
			reference: () => {
				for (let n = 0; n < 16; n++) safeMarkdown(short)
			},
			times: 5,
			floor: 10,
		})
	}
})
