import fc from 'fast-check'
import t from 'tap'
import { Fault, isFault } from '../../../core/errors.ts'
import { openCallTracker } from '../../../plugins/skills/call-tracker.ts'
import type { Parameter } from '../../../plugins/skills/contract.ts'
import { readDocument } from '../../../plugins/skills/document.ts'
import { readProgram } from '../../../plugins/skills/fence.ts'
import { folderOfDocument } from '../../../plugins/skills/folder/unpack.ts'
import { readFrontMatter } from '../../../plugins/skills/front-matter.ts'
import { toolNameFor } from '../../../plugins/skills/names.ts'
import { checkArguments, schemaOf } from '../../../plugins/skills/parameters.ts'
import { skillsOf } from '../../../plugins/skills/skills.ts'
import { arbitraryText } from '../../support/arbitrary-text.ts'
import { assertCpuTime } from '../../support/cpu-time.ts'

const head = (lines: string, body = 'Body.'): string => `---\n${lines}\n---\n${body}`

void t.test('front matter becomes plain data with the line of each value', async (t) => {
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

void t.test('front matter that would take long to parse is refused at once', async (t) => {
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
	const ordinary = Array.from({ length: 400 }, (_, n) => `key${n}: some words about it, and more`).join('\n')
	for (const weight of weights) {
		const long = weight.repeat(16_000 / weight.length)
		t.throws(() => readFrontMatter(head(long)), { code: 'skill_invalid' }, JSON.stringify(weight))
		// Parsing some of these would take many times as long as ordinary front matter.
		const work = () => {
			try {
				readFrontMatter(head(long))
			} catch {}
		}
		await assertCpuTime(t, JSON.stringify(weight), { work, reference: () => readFrontMatter(head(ordinary)), times: 2 })
	}
})

void t.test('any text is a document or is refused as invalid', async () => {
	const lines = [
		'---\n',
		'name: a\n',
		'description: b\n',
		'parameters:\n',
		'  - ',
		'type: string\n',
		'runtime: javascript\n',
	]
	const fragments = [
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
	const parts = fc.array(fc.oneof(fc.constantFrom(...lines, ...fragments), arbitraryText()), {
		maxLength: 40,
	})
	await fc.assert(
		fc.asyncProperty(parts, fc.boolean(), async (list, hasHead) => {
			const text = (hasHead ? '---\nname: a\ndescription: b\n' : '') + list.join('')
			try {
				const document = await readDocument(text)
				return typeof document.name === 'string' && Array.isArray(document.parameters)
			} catch (error) {
				return isFault(error, 'skill_invalid')
			}
		}),
		{ numRuns: 400 },
	)
})

void t.test('instructions that are longer than the default limit of a tool result cause a warning', async (t) => {
	const warningsFor = async (characters: number): Promise<string> =>
		(await readDocument(head('name: a\ndescription: b', 'x'.repeat(characters)))).warnings.join('\n')
	t.equal(await warningsFor(32_768), '')
	t.match(
		await warningsFor(32_769),
		/32769 characters.*runs\.limits\.result_characters.*only the beginning and the end/,
	)
})

/** The code of the program, or the message of the refusal. */
const programIn = async (markdown: string): Promise<string> => {
	try {
		return (await readProgram(markdown, 1)).code
	} catch (error) {
		if (!isFault(error, 'skill_invalid')) throw error
		return error.message
	}
}

void t.test('the program is the first fenced block of its language', async (t) => {
	t.equal(await programIn('```sh\nx\n```\n```js\na\n```\n```js\nb\n```'), 'a\n')
	t.match(await readProgram('Text\n\n~~~~ TypeScript title="x"\na\n~~~\nb\n~~~~~\nc', 10), {
		code: 'a\n~~~\nb\n',
		language: 'typescript',
		line: 13,
	})
	t.equal(
		await programIn('````md\n```js\nnot this\n```\n````\n```mjs\nthis\n```'),
		'this\n',
		'a fence inside another one is text',
	)
	t.equal(await programIn('  ```js\n  a\n    b\n  ```'), 'a\n  b\n', 'its indentation is removed')
	t.equal(await programIn('```js\nno end'), 'no end\n')
	t.equal(await programIn('```js\r\na\r\n```\r\nb'), 'a\n')
	for (const none of ['    ```js\n    a\n    ```', '```json\n{}\n```', '```constructor\nx\n```', ''])
		t.match(await programIn(none), /^line 1: runtime: javascript needs a program/, JSON.stringify(none))
})

const PROGRAM = '```js\nexport default () => "shown"\n```\n'
const HIDDEN = PROGRAM.replace('shown', 'hidden')
const indented = (text: string, by: string): string => text.trimEnd().replaceAll(/^/gm, by)

const refusals: [what: string, body: string, message: RegExp][] = [
	['pre', `<pre>\n${HIDDEN}</pre>\n\n${PROGRAM}`, /^line 1: HTML .* remove <pre>/],
	['details', `Text\n\n<details hidden>\n\n${HIDDEN}\n</details>\n\n${PROGRAM}`, /^line 3: HTML .*<details hidden>/],
	['script', `<script>\n\n${HIDDEN}</script>\n\n${PROGRAM}`, /^line 1: HTML .*<script>/],
	[
		'a comment',
		`<!--\n\`\`\`js\nexport default 1\n\`\`\`\n-->\n\n${PROGRAM}`,
		/^line 1: a block of code must not be in a comment/,
	],
	[
		'the title of a link',
		`[a]: b (t\n\`\`\`js\nexport default 1\n\`\`\`\n)\n\n${PROGRAM}`,
		/title of a link|second|exports/,
	],
	['a tag in a line', `Text <span style="display:none">\n\n${PROGRAM}`, /^line 1: HTML/],
	['a tag with a tab', `<details\thidden>\n\n${PROGRAM}`, /^line 1: HTML/],
	['a tag that does not end', `<details\thidden title=">\n\n${PROGRAM}`, /^line 1: HTML/],
	['a tag in a table', `|a|\n|-|\n|<b hidden>|\n\n${PROGRAM}`, /^line 1: HTML/],
	['a comment that ends early', `<!-- --!><b hidden> -->\n\n${PROGRAM}`, /^line 1: HTML/],
	['a tag after it', `${PROGRAM}\n<style>pre { display: none }</style>\n`, /^line 5: HTML/],
	['a processing instruction', `<?x\n\n${PROGRAM}`, /^line 1: HTML/],
	[
		'two programs',
		`${PROGRAM}\nText\n\n${HIDDEN}`,
		/^line 7: the program is the block on line 1, but this block exports/,
	],
	['a second one in a list', `${PROGRAM}\n- Text\n\n${indented(HIDDEN, '  ')}\n`, /exports something too/],
	['a second one in a quote', `${PROGRAM}\n${indented(HIDDEN, '> ')}\n`, /exports something too/],
	[
		'an example before it',
		`\`\`\`js\nrun()\n\`\`\`\n\n${PROGRAM}`,
		/^line 5: .*line 1, which exports nothing.*before its examples/,
	],
	['in a list', `- Text\n\n${indented(PROGRAM, '  ')}\n`, /^line 1: the program is in a list or a quote/],
	['in a quote', indented(PROGRAM, '> '), /^line 1: the program is in a list or a quote/],
	[
		'an end that other parsers see',
		'```js\nexport default a\n```\t\n\nmore\n```\n',
		/^line 3: this line looks like the end/,
	],
	['an end with other characters', '```js\nexport default a\n```~~\n\nText\n', /^line 3: this line looks like the end/],
	[
		'a tab after the end of the last block',
		'```js\nexport default a\n```\t\n',
		/^line 3: this line looks like the end/,
	],
]

void t.test('code that a reader could mistake for the program, or not see, is refused with its line', async (t) => {
	for (const [what, body, message] of refusals) t.match(await programIn(body), message, what)
})

void t.test('examples, comments and other Markdown are accepted', async (t) => {
	const example = '```js\nconst answer = await weather({ city: "Rome" })\n```\n'
	for (const [what, body] of Object.entries({
		'an example after it': `${PROGRAM}\nFor example:\n\n${example}`,
		'an example in a list': `1. Call it:\n\n${indented(example, '   ')}\n\n${PROGRAM}`,
		'an example in a quote': `${indented(example, '> ')}\n\n${PROGRAM}`,
		'another program as text': `${PROGRAM}\n\`\`\`text\nexport default 1\n\`\`\`\n`,
		'a comment': `<!-- markdownlint-disable -->\n\n${PROGRAM}`,
		'tags as code': `\`<details>\` and \\<b> &lt;b> 1 < 2 <https://a.example/>\n\n${PROGRAM}`,
		'a link with a title': `[a][b] [c](d "e")\n\n[b]: https://a.example/ "title"\n\n${PROGRAM}`,
		'common Markdown': `# Title\n\n- a\n- **b**\n\n|a|b|\n|-|-|\n|1|2|\n\n> quote\n\n${PROGRAM}\n---\n\n\`\`\`sh\nls\n\`\`\`\n`,
	}))
		t.equal(await programIn(body), 'export default () => "shown"\n', what)
})

void t.test('reading a program takes linear time', async (t) => {
	const read = (unit: string, length: number) => () => programIn(`${unit.repeat(length / unit.length)}\n\n${PROGRAM}`)
	// For eight times the text, quadratic time would be 64 times as long.
	for (const unit of ['-\n', '> ', '[a]: b "x\n', '`', '<a b="c" '])
		await assertCpuTime(t, unit, { work: read(unit, 240_000), reference: read(unit, 30_000), times: 30, floor: 4 })
	const within = (length: number) => () => programIn(PROGRAM.replace('export', `${'\n'.repeat(length)}export`))
	await assertCpuTime(t, 'lines of a program', {
		work: within(240_000),
		reference: within(30_000),
		times: 30,
		floor: 4,
	})
})

void t.test('a block is found on its line, whatever precedes it', async () => {
	const pieces = [
		'a',
		'\n',
		'\n\n',
		'- ',
		'> ',
		'# ',
		'    ',
		'\t',
		'1. ',
		'*',
		'---\n',
		'===\n',
		'[a]: b\n',
		'\r\n',
		' ',
	]
	const texts = fc.array(fc.constantFrom(...pieces), { maxLength: 30 }).map((parts) => parts.join(''))
	await fc.assert(
		fc.asyncProperty(texts, async (before) => {
			const text = `${before}\n\nEnd.\n\n${PROGRAM}`
			const { line, code } = await readProgram(text, 1)
			return text.split(/\r?\n/)[line - 1] === code.trimEnd()
		}),
		{ numRuns: 500 },
	)
})

void t.test('arguments are checked strictly, as the schema for the model states', async (t) => {
	const parameter = (name: string, type: Parameter['type'], fields: Partial<Parameter> = {}): Parameter => ({
		name,
		type,
		required: false,
		description: '',
		...fields,
	})
	const parameters = [
		parameter('s', 'string', { required: true, description: 'Text.' }),
		parameter('n', 'number'),
		parameter('i', 'integer', { enum: [1, 2], default: 2 }),
		parameter('b', 'boolean'),
		parameter('a', 'array', { default: [1] }),
		parameter('constructor', 'object'),
	]
	// tap compares the property `constructor` as the class of the object.
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
	const rejects = (args: Record<string, unknown>, message: RegExp): void =>
		void t.throws(() => checkArguments(parameters, args), { code: 'invalid_arguments', message })
	rejects({}, /"s" is missing/)
	rejects({ s: 1, n: '1', i: 1.5, b: 'true', a: {}, constructor: [] }, /"s".*"n".*"i".*"b".*"a".*"constructor"/)
	rejects({ s: null }, /"s" must be text/)
	rejects({ s: 'x', i: 3 }, /"i" must be one of 1, 2/)
	rejects({ s: 'x', toString: 1 }, /"toString" is not a parameter/)
	rejects(JSON.parse('{"s": "x", "__proto__": {"n": 1}}') as Record<string, unknown>, /"__proto__" is not a parameter/)
})

void t.test('any skill name becomes a unique tool name', async (t) => {
	const free = (): boolean => false
	t.equal(toolNameFor('pdf-processing', free), 'skill_pdf-processing')
	t.equal(toolNameFor('Über Größe & Co.', free), 'skill_uber-gro-e-co')
	t.match(toolNameFor('技能', free), /^skill_[0-9a-f]{8}$/)
	// Their hashes have the same beginning: 6840fcce.
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

void t.test('a program that no process can check is not reported as invalid', async (t) => {
	const hosts = { check: () => Promise.reject(new Fault('sandbox_crash', 'no process starts')) }
	const skills = skillsOf({} as never, hosts as never, {} as never, openCallTracker())
	const document = head('name: a\ndescription: b\nruntime: javascript', PROGRAM)
	const folder = folderOfDocument(Buffer.from(document))
	const installed = skills.install({ name: 'ada', uid: 'u' }, folder, { kind: 'inline' })
	await t.rejects(installed, { code: 'sandbox_crash', message: 'no process starts' })
})
