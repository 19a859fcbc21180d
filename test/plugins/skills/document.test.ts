import fc from 'fast-check'
import t from 'tap'
import { isFault } from '../../../core/errors.ts'
import type { Parameter } from '../../../plugins/skills/contract.ts'
import { readDocument } from '../../../plugins/skills/document.ts'
import { findProgram } from '../../../plugins/skills/fence.ts'
import { readFrontMatter } from '../../../plugins/skills/front-matter.ts'
import { toolNameFor } from '../../../plugins/skills/names.ts'
import { checkArguments, schemaOf } from '../../../plugins/skills/parameters.ts'

import { anyText } from '../../support/any-text.ts'
const head = (lines: string, body = 'Body.'): string => `---\n${lines}\n---\n${body}`

void t.test('a head becomes plain data, and each value knows its line', async (t) => {
	const yaml =
		'a: "x: y"\nb:\n  - c: 1\n    d: [true, null, 2024-01-01]\n  - e: |\n      more & *lines\n      ---\nf: 0x10'
	const { data, lineOf, body, bodyLine } = readFrontMatter(head(yaml, 'One.\r\nTwo.'))
	t.strictSame(data, {
		a: 'x: y',
		b: [{ c: 1, d: [true, null, '2024-01-01'] }, { e: 'more & *lines\n---\n' }],
		f: 16,
	})
	t.strictSame([body, bodyLine], ['One.\r\nTwo.', 11])
	t.strictSame([lineOf(['a']), lineOf(['b', 0, 'd']), lineOf(['b', 1]), lineOf(['b', 1, 'x', 'y'])], [2, 5, 6, 6])
	t.equal(lineOf(['nothing']), 1)
	t.strictSame(readFrontMatter('\uFEFF---\t\r\na: 1\r\n---  \r\n').data, { a: 1 })
	t.strictSame(readFrontMatter('---\na: 1\n---').body, '')
})

void t.test('a head that is made to take long is refused at once, wherever its weight lies', async (t) => {
	const weights = [
		'[',
		'{a: ',
		'- ',
		'? ',
		': ',
		'-\n',
		'"',
		'&a ',
		'*a ',
		'!a ',
		'%a\n',
		'["]" ',
		'a: b: c\n',
		'{a,',
		'#\n',
		'\n',
	]
	const cost = (lines: string): number => {
		const measure = (): number => {
			const from = process.cpuUsage()
			try {
				readFrontMatter(head(lines))
			} catch {} // what it says is not asked here
			const { user, system } = process.cpuUsage(from)
			return user + system
		}
		return Math.min(measure(), measure(), measure())
	}
	const ordinary = Array.from({ length: 400 }, (_, n) => `key${n}: some words about it, and more`).join('\n')
	const allowed = 2 * cost(ordinary)
	for (const weight of weights) {
		const long = weight.repeat(16_000 / weight.length)
		t.throws(() => readFrontMatter(head(long)), { code: 'skill_invalid' }, JSON.stringify(weight))
		// Parsed, some of these take many times as long as an ordinary head.
		const took = cost(long)
		t.ok(took < allowed, `${JSON.stringify(weight)} took ${took} µs, and ${allowed} are allowed`)
	}
})

void t.test('any text is a document or is refused as none', async () => {
	const pieces = [
		'---\n',
		'name: a\n',
		'description: b\n',
		'parameters:\n',
		'  - ',
		'type: string\n',
		'runtime: javascript\n',
	]
	const more = [
		'permissions: ',
		'{',
		'}',
		'[',
		']',
		'hosts: ',
		'```js\n',
		'```\n',
		'\n',
		'"',
		"'",
		'|',
		'>',
		'#',
		': ',
		'\t',
		'&a',
		'<<: ',
		'\uFEFF',
	]
	const parts = fc.array(fc.oneof(fc.constantFrom(...pieces, ...more), anyText()), {
		maxLength: 40,
	})
	fc.assert(
		fc.property(parts, fc.boolean(), (list, begun) => {
			const text = (begun ? '---\nname: a\ndescription: b\n' : '') + list.join('')
			try {
				const document = readDocument(text)
				return typeof document.name === 'string' && Array.isArray(document.parameters)
			} catch (error) {
				return isFault(error, 'skill_invalid')
			}
		}),
		{ numRuns: 400 },
	)
})

void t.test('the program is the first fenced block of its language', async (t) => {
	const code = (markdown: string): string | undefined => findProgram(markdown)?.code
	t.equal(code('```sh\nx\n```\n```js\na\n```\n```js\nb\n```'), 'a\n')
	t.match(findProgram('Text\n\n~~~~ TypeScript title="x"\na\n~~~\nb\n~~~~~\nc'), {
		code: 'a\n~~~\nb\n',
		language: 'typescript',
		line: 4,
	})
	t.equal(code('````md\n```js\nnot this\n```\n````\n```mjs\nthis\n```'), 'this\n', 'a fence within another is text')
	t.equal(code('  ```js\n  a\n    b\n  ```'), 'a\n  b\n', 'its indentation is taken off')
	t.equal(code('    ```js\n    a\n    ```'), undefined, 'four spaces make no fence')
	t.equal(code('```js\nno end'), 'no end\n')
	t.equal(code('```json\n{}\n```'), undefined)
	t.equal(code('```constructor\nx\n```'), undefined)
	t.equal(code('```js\r\na\r\n```\r\nb'), 'a\r\n')
})

void t.test('arguments are checked strictly, and a model is told the same', async (t) => {
	const parameter = (name: string, type: Parameter['type'], more: Partial<Parameter> = {}): Parameter => ({
		name,
		type,
		required: false,
		description: '',
		...more,
	})
	const parameters = [
		parameter('s', 'string', { required: true, description: 'Text.' }),
		parameter('n', 'number'),
		parameter('i', 'integer', { enum: [1, 2], default: 2 }),
		parameter('b', 'boolean'),
		parameter('a', 'array', { default: [1] }),
		parameter('constructor', 'object'),
	]
	// tap takes a property called constructor for the class.
	const same = (found: unknown, wanted: unknown): void =>
		void t.strictSame(JSON.stringify(found), JSON.stringify(wanted))
	same(schemaOf(parameters), {
		type: 'object',
		properties: {
			s: { type: 'string', description: 'Text.' },
			n: { type: 'number' },
			i: { type: 'integer', enum: [1, 2], default: 2 },
			b: { type: 'boolean' },
			a: { type: 'array', items: {}, default: [1] },
			constructor: { type: 'object' },
		},
		required: ['s'],
		additionalProperties: false,
	})
	t.strictSame(checkArguments(parameters, { s: '' }), { s: '', i: 2, a: [1] })
	same(checkArguments(parameters, { s: 'x', constructor: { a: 1 }, n: 1e300 }), {
		s: 'x',
		n: 1e300,
		i: 2,
		a: [1],
		constructor: { a: 1 },
	})
	const wrong = (args: Record<string, unknown>, says: RegExp): void =>
		void t.throws(() => checkArguments(parameters, args), { code: 'invalid_arguments', message: says })
	wrong({}, /"s" is missing/)
	wrong({ s: 1, n: '1', i: 1.5, b: 'true', a: {}, constructor: [] }, /"s".*"n".*"i".*"b".*"a".*"constructor"/)
	wrong({ s: null }, /"s" must be text/)
	wrong({ s: 'x', i: 3 }, /"i" must be one of 1, 2/)
	wrong({ s: 'x', toString: 1 }, /"toString" is not taken/)
	wrong(JSON.parse('{"s": "x", "__proto__": {"n": 1}}') as Record<string, unknown>, /"__proto__" is not taken/)
})

void t.test("a tool's name is made from any name, and is never another's", async (t) => {
	const free = (): boolean => false
	t.equal(toolNameFor('pdf-processing', free), 'skill_pdf-processing')
	t.equal(toolNameFor('Über Größe & Co.', free), 'skill_uber-gro-e-co')
	t.match(toolNameFor('技能', free), /^skill_[0-9a-f]{8}$/)
	// Their hashes begin alike: 6840fcce.
	const taken = new Set<string>()
	for (const name of ['a b c d e f g', 'a?b.c,d_e f g', 'a@b,c(d.e f g']) {
		taken.add(toolNameFor(name, (tool) => taken.has(tool)))
	}
	t.equal(taken.size, 3)
	t.match(
		toolNameFor('a b', (tool) => tool === 'skill_a-b'),
		/^skill_a-b_[0-9a-f]{8}$/,
	)
	fc.assert(
		fc.property(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 64 }), fc.boolean(), (name, taken) =>
			/^skill_[a-z0-9_-]{1,58}$/.test(toolNameFor(name, () => taken)),
		),
	)
})
