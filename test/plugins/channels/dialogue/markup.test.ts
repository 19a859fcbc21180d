import fc from 'fast-check'
import t from 'tap'
import { convert, lengthOf } from '../../../../plugins/channels/dialogue/markup.ts'
import { nextPart } from '../../../../plugins/channels/dialogue/part.ts'
import type { SplitPosition } from '../../../../plugins/channels/dialogue/split.ts'
import { arbitraryText } from '../../../support/arbitrary-text.ts'
import { assertCpuTime } from '../../../support/cpu-time.ts'

const tag =
	/^<(?:\/?(?:b|i|s|code|pre|blockquote)|code class="language-[\w+#.-]+"|a href="(?:https?|tg|mailto):[^"<>]+"|\/a)>$/i

/** Throws unless the text contains only the allowed tags, in pairs, none within itself, and everything else is escaped. */
function check(html: string): void {
	const open: string[] = []
	const rest = html.replaceAll(/<[^<>]*>/g, (one) => {
		if (!tag.test(one)) throw new Error(`the tag ${one}`)
		const name = /[a-z]+/.exec(one)?.[0] ?? ''
		if (!one.startsWith('</')) {
			if (open.includes(name)) throw new Error(`${name} within itself`)
			if (open.includes('code') || (open.includes('pre') && name !== 'code')) throw new Error(`${name} within code`)
			open.push(name)
		} else if (open.pop() !== name) throw new Error(`${one} closes another one`)
		return ''
	})
	if (open.length > 0) throw new Error(`left open: ${open.join()}`)
	if (/[<>]/.test(rest) || /&(?!(?:amp|lt|gt);)/.test(rest)) throw new Error(`not escaped: ${rest}`)
	if (!html.isWellFormed()) throw new Error('not well formed')
}

/** Syntax of Markdown and HTML, and text that resembles it. */
const tokens = [
	'**',
	'*',
	'_',
	'~~',
	'`',
	'```',
	'\n```js\n',
	'\n```\n',
	'# ',
	'> ',
	'- ',
	'1. ',
	'\n',
	'\n\n',
	'  ',
	'\t',
	'[',
	'](',
	')',
	'![',
	'<',
	'>',
	'&',
	'&lt;',
	'&#0;',
	'&#60;',
	'"',
	"'",
	'|',
	'\n|-|-|\n',
	'\\',
	'---\n',
	'https://example.org/?a=1&b="2"',
	'javascript:alert(1)',
	'mailto:a@b.c',
	'<b>',
	'</b>',
	'<script>',
	'[ ] ',
	'[x] ',
	'\0',
	'\ud800',
	'👩‍👩‍👧‍👦',
	'\u00a0',
	'[a]: http://x\n',
	'[a]',
	'<http://x.y/>',
	'<!-- ',
	' -->',
	'&amp;amp;',
]
const piece = fc.oneof(
	{
		arbitrary: fc.constantFrom(...tokens),
		weight: 4,
	},
	{ arbitrary: fc.lorem({ maxCount: 4 }), weight: 2 },
	{ arbitrary: arbitraryText({ maxLength: 8 }), weight: 1 },
)
const markdown = fc.array(piece, { maxLength: 40 }).map((pieces) => pieces.join(''))

const words = (text: string): string => text.replaceAll(/[^a-z]+/gi, ' ').trim()

void t.test('HTML contains only the allowed tags, closed and in order, for any input', async (t) => {
	await fc.assert(
		fc.asyncProperty(markdown, async (text) => check(await convert(text, 'html'))),
		{ numRuns: 2000 },
	)
	t.pass()
})

void t.test('plain text contains all the words', async (t) => {
	const prose = fc.array(
		fc.oneof(fc.lorem({ maxCount: 5 }), fc.constantFrom('**', '*', '\n\n', '- ', '> ', '# ', '~~', '`')),
	)
	await fc.assert(
		fc.asyncProperty(prose, async (pieces) => {
			const text = pieces.join(' ')
			const plain = await convert(text, 'plain')
			if (words(plain) !== words(text)) throw new Error(`${words(plain)}\n${words(text)}`)
		}),
		{ numRuns: 500 },
	)
	t.pass()
})

void t.test('parts of a text fit the limit in every format, and reach its end', async (t) => {
	const formats = fc.record({
		markup: fc.constantFrom('html', 'plain', 'markdown'),
		max_length: fc.integer({ min: 64, max: 400 }),
	})
	await fc.assert(
		fc.asyncProperty(fc.array(markdown, { maxLength: 6 }), formats, async (texts, format) => {
			const source = texts.join('\n').toWellFormed()
			for (let place: SplitPosition = { offset: 0, fence: null }; place.offset < source.length;) {
				const { text, next } = await nextPart(source, place, format as Parameters<typeof nextPart>[2])
				if (next.offset <= place.offset) throw new Error('no progress')
				if (format.markup === 'html') check(text)
				const length = format.markup === 'html' ? lengthOf(text, 'html') : text.length
				if (length > format.max_length) throw new Error(`${length} > ${format.max_length}`)
				if (text.trim() === '' && next.offset < source.length) throw new Error('an empty part')
				place = next
			}
		}),
		{ numRuns: 500 },
	)
	t.pass()
})

void t.test('each Markdown element has its form in HTML and in plain text', async (t) => {
	const cases: [markdown: string, html: string, plain: string][] = [
		['a **b *c*** ~~d~~ `<e>`', 'a <b>b <i>c</i></b> <s>d</s> <code>&lt;e&gt;</code>', 'a b c d <e>'],
		['# One\n\ntwo\n* * *\nthree', '<b>One</b>\n\ntwo\n\n———\n\nthree', 'One\n\ntwo\n\n———\n\nthree'],
		['```c++ x\na < b\n\n  c\n```', '<pre><code class="language-c++">a &lt; b\n\n  c</code></pre>', 'a < b\n\n  c'],
		['```"><b>\nx\n```', '<pre>x</pre>', 'x'],
		['> a\n> > b', '<blockquote>a\n\nb</blockquote>', 'a\n\nb'],
		['- a\n  - b\n- [x] c\n- [ ] d', '• a\n  • b\n• ☑ c\n• ☐ d', '• a\n  • b\n• ☑ c\n• ☐ d'],
		['text\n\n3. a\n4. b', 'text\n\n3. a\n4. b', 'text\n\n3. a\n4. b'],
		['[a *b*](https://x.y/?q="1"&r=2)', 'a <i>b</i>', 'a b'],
		['[a](https://x.y/?q=1&r=2)', '<a href="https://x.y/?q=1&amp;r=2">a</a>', 'a (https://x.y/?q=1&r=2)'],
		[
			'https://x.y and ![cat](http://x/c.png)',
			'<a href="https://x.y">https://x.y</a> and <a href="http://x/c.png">cat</a>',
			'https://x.y and cat (http://x/c.png)',
		],
		['[a](javascript:alert) [b](data:x) [c](./d)', 'a b c', 'a b c'],
		['a &amp; b &lt; c &#x1F600; &copy;', 'a &amp; b &lt; c 😀 &amp;copy;', 'a & b < c 😀 &copy;'],
		['<b onclick="x">hi</b> \\*no\\*', '&lt;b onclick="x"&gt;hi&lt;/b&gt; *no*', '<b onclick="x">hi</b> *no*'],
		[
			'|a|long b|\n|-|-:|\n|1|**2**|',
			'<pre>a   | long b\n----|-------\n1   |      2</pre>',
			'a   | long b\n----|-------\n1   |      2',
		],
		[
			'|城市|b|\n|-|-|\n|東京都|1|\n|👍|2|',
			'<pre>城市   | b\n-------|----\n東京都 | 1\n👍     | 2</pre>',
			'城市   | b\n-------|----\n東京都 | 1\n👍     | 2',
		],
		['a\\\nb  \nc\nd', 'a\nb\nc\nd', 'a\nb\nc\nd'],
	]
	for (const [markdown, html, plain] of cases) {
		t.equal(await convert(markdown, 'html'), html, markdown)
		t.equal(await convert(markdown, 'plain'), plain, markdown)
	}
})

void t.test('excessive nesting is shown as written', async (t) => {
	t.match(await convert('>'.repeat(6_000), 'plain'), /^>{5900,}$/)
	check(await convert('>'.repeat(6_000), 'html'))
})

void t.test('only a block that cannot be converted is shown as written', async (t) => {
	const strange = '*a_'.repeat(1_000)
	t.equal(await convert(`**a**\n\n${strange}\n\n- **b**`, 'plain'), `a\n\n${strange}\n\n• b`)
	const head = `|${'a|'.repeat(200)}\n|${'-|'.repeat(200)}\n`
	t.equal(await convert(`**a**\n\n${head}${'|\n'.repeat(400)}`, 'plain'), `a\n\n${head}${'|\n'.repeat(400)}`.trimEnd())
	const table = '|a|b|\n|-|-|\n|1|2|\n\n'
	t.match(await convert(table.repeat(500), 'plain'), /^(?:a   \| b\n----\|----\n1   \| 2\s*){500}$/)
})

void t.test('no text takes much longer to convert than others of its length', async (t) => {
	const honest = 'Some **bold** words, a [link](https://example.org/), `code` and *more*.\n\n- one\n- two\n\n'
	const shapes = [
		'*a_',
		'_a_',
		'***a_',
		'__a_',
		'a_b',
		'~a~~',
		'[',
		'![',
		'[a](',
		'<a ',
		'`',
		'&',
		'\\',
		'a@',
		'www.a.',
	]
	shapes.push(
		'> ',
		'- ',
		'1. ',
		'- > ',
		'- \n\n',
		'|',
		'|a|b|\n|-|-|\n',
		'<\n|-|-|\na@b.c',
		'---',
		'|-|',
		'- - ',
		'```a\n',
		'<__\n\n',
	)
	const conversion = (shape: string) => () => convert(shape.repeat(Math.ceil(32_000 / shape.length)), 'html')
	const columns = `|${'a|'.repeat(4_000)}\n|${'-|'.repeat(4_000)}\n`
	shapes.push(
		'- a\nb\n~',
		'- a\n---\n~',
		'- [ ] $\n|-|-|\n~',
		'> '.repeat(5_000) + '\n' + 'a\n'.repeat(11_000),
		'> '.repeat(12) + '\n' + 'a\n'.repeat(15),
	)
	for (const shape of [...shapes, columns + '|\n'.repeat(8_000)])
		await assertCpuTime(t, JSON.stringify(shape.slice(0, 20)), {
			work: conversion(shape),
			reference: conversion(honest),
			times: 60,
			floor: 3,
		})
})
