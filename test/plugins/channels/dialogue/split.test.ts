import fc from 'fast-check'
import t from 'tap'
import { fenceAfter, nextMarkdownPart } from '../../../../plugins/channels/dialogue/split.ts'
import type { Fence, SplitPosition } from '../../../../plugins/channels/dialogue/split.ts'
import { assertCpuTime } from '../../../support/cpu-time.ts'

/** Text as people write it: paragraphs, code, long words, characters of several code units, blank lines. */
const markdown = fc
	.array(
		fc.oneof(
			{ arbitrary: fc.lorem({ maxCount: 30 }), weight: 4 },
			{ arbitrary: fc.constantFrom('\n', '\n\n', ' ', '  \n', '\n\n\n', '\t', '. ', '! ', '\r\n'), weight: 4 },
			{ arbitrary: fc.constantFrom('\n```\n', '\n```js\n', '\n~~~~ a b\n', '\n  ```\n', '```', '`', '~~~'), weight: 3 },
			{ arbitrary: fc.constantFrom('👩‍👩‍👧‍👦', 'é', '𝕏', '日本語。', 'ﷺ', '🇫🇷'), weight: 2 },
			{ arbitrary: fc.string({ maxLength: 90, unit: 'grapheme' }), weight: 1 },
			{ arbitrary: fc.integer({ min: 1, max: 900 }).map((n) => 'x'.repeat(n)), weight: 1 },
			{ arbitrary: fc.integer({ min: 1, max: 300 }).map((n) => '`'.repeat(n)), weight: 1 },
		),
		{ maxLength: 40 },
	)
	.map((parts) => parts.join(''))

function openAtEnd(text: string): Fence | null {
	return text.split('\n').reduce<Fence | null>(fenceAfter, null)
}

/** The visible text, without the fences, which parts repeat. */
function visible(text: string): string {
	return text.replaceAll(/[\s`~]/g, '')
}

void t.test('no part is longer than the limit, or empty, or ends within a code block', async (t) => {
	fc.assert(
		fc.property(markdown, fc.integer({ min: 32, max: 700 }), (text, limit) => {
			for (const part of split(text, limit)) {
				if (part.length > limit) throw new Error(`${part.length} > ${limit}`)
				if (part.trim() === '') throw new Error('a part is blank')
				if (openAtEnd(part) !== null) throw new Error(`left open: ${JSON.stringify(part)}`)
			}
		}),
		{ numRuns: 500 },
	)
	t.pass()
})

void t.test('only whitespace is lost, and each part continues the one before', async (t) => {
	fc.assert(
		fc.property(markdown, fc.integer({ min: 200, max: 700 }), (text, limit) => {
			let shown = ''
			for (let place: SplitPosition = { offset: 0, fence: null }; place.offset < text.length;) {
				const { text: part, next } = nextMarkdownPart(text, place, limit)
				if (next.offset <= place.offset) throw new Error('no progress')
				const opening = place.fence ? `${place.fence.marker}${place.fence.info.slice(0, 32).toWellFormed()}\n` : ''
				shown += part.startsWith(opening) ? part.slice(opening.length) : part
				place = next
			}
			if (visible(shown) !== visible(text)) throw new Error(`${visible(shown)}\n${visible(text)}`)
		}),
		{ numRuns: 500 },
	)
	t.pass()
})

void t.test('no character is cut in two', async (t) => {
	const family = '👩‍👩‍👧‍👦'
	for (let limit = 40; limit < 60; limit++) {
		const parts = split(family.repeat(20), limit)
		t.ok(
			parts.every((part) => part.replaceAll(family, '') === ''),
			`limit ${limit}`,
		)
	}
	const pairs = split('𝕏'.repeat(100), 33)
	t.ok(pairs.every((part) => part.isWellFormed()))
})

void t.test('a part ends at a paragraph, else a line, else a sentence, else a space, else anywhere', async (t) => {
	const word = 'word '.repeat(7).trim() // 34
	t.strictSame(split(`${word}\n\n${word}\n${word}`, 75), [word, `${word}\n${word}`])
	t.strictSame(split(`${word}\n${word}\nmore of it`, 75), [`${word}\n${word}`, 'more of it'])
	t.strictSame(split(`${word}. ${word} ${word}`, 75), [`${word}.`, `${word} ${word}`])
	t.strictSame(split(`${word} ${word} ${word}`, 72), [`${word} ${word}`, word])
	t.strictSame(split('y'.repeat(80), 40), ['y'.repeat(40), 'y'.repeat(40)])
	t.strictSame(split('short', 40), ['short'])
	t.strictSame(split(' \n\n ', 40), [])
})

void t.test('a code block is closed and opened again with its language and indent', async (t) => {
	const line = 'x = 1'.padEnd(29, '!')
	const code = [line, '', `    ${line}`, line, line].join('\n')
	t.strictSame(split(`Look:\n\n\`\`\`python\n${code}\n\`\`\`\n\nDone.`, 120), [
		`Look:\n\n\`\`\`python\n${line}\n\n    ${line}\n${line}\n\`\`\``,
		`\`\`\`python\n${line}\n\`\`\`\n\nDone.`,
	])
	const nested = split(`1. Look:\n   ~~~~ a\n${`   ${line}\n`.repeat(8)}   ~~~~\n2. Done`, 130)
	t.equal(nested.length, 3)
	t.equal(nested[1], `~~~~a\n${line}\n${line}\n${line}\n~~~~`)
	t.equal(nested[2], `~~~~a\n${line}\n${line}\n~~~~\n2. Done`)
})

void t.test('a part continues one with another limit', async (t) => {
	const text = `One.\n\n\`\`\`js\n${'let a = 1\n'.repeat(40)}\`\`\`\nEnd`
	const first = nextMarkdownPart(text, { offset: 0, fence: null }, 200)
	const rest = nextMarkdownPart(text, first.next, 4000)
	t.match(rest.text, /^```js\nlet a/)
	t.match(rest.text, /```\nEnd$/)
	t.equal((first.text + rest.text).match(/let a/g)?.length, 40)
})

void t.test('it takes linear time', async (t) => {
	const shapes = ['a', ' ', '\n', '```\n', '`', 'a\n\n', '.', '~', '👩‍👩‍👧‍👦', '> ', 'e\u0301']
	for (const shape of shapes) {
		const [short, long] = [shape.repeat(20_000), shape.repeat(160_000)]
		// The same amount of text at once and in eight parts: quadratic time would be eight times as much.
		await assertCpuTime(t, `of ${JSON.stringify(shape)}`, {
			work: () => split(long, 2000),
			reference: () => {
				for (let n = 0; n < 8; n++) split(short, 2000)
			},
			times: 4,
			floor: 10,
		})
	}
})

/** All parts. */
function split(text: string, limit: number): string[] {
	const parts: string[] = []
	for (let place: SplitPosition = { offset: 0, fence: null }; place.offset < text.length;) {
		const part = nextMarkdownPart(text, place, limit)
		if (part.text !== '') parts.push(part.text)
		place = part.next
	}
	return parts
}
