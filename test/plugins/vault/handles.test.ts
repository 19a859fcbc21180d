import fc from 'fast-check'
import t from 'tap'
import { fillHandles } from '../../../plugins/vault/handles.ts'

const values: Record<string, string> = {
	A: 'value of a',
	'b.c-d_9': 'other',
	nested: 'see {{secret:A}}',
	dollars: "$& $1 $'",
}

async function fill<T>(data: T): Promise<T> {
	return fillHandles(data, async (name) => {
		const value = values[name]
		if (value === undefined) throw new Error(`asked for ${name}`)
		return value
	})
}

void t.test('handles are replaced anywhere in a string', async (t) => {
	t.equal(await fill('{{secret:A}}'), 'value of a')
	t.equal(await fill('Bearer {{secret:A}}, {{secret:b.c-d_9}}{{secret:A}}!'), 'Bearer value of a, othervalue of a!')
	t.strictSame(await fill({ a: ['x', { b: '{{secret:A}}', c: 1, d: null, e: true }] }), {
		a: ['x', { b: 'value of a', c: 1, d: null, e: true }],
	})
})

void t.test('a value is inserted as it is: handles and patterns in it have no effect', async (t) => {
	t.equal(await fill('{{secret:nested}}'), 'see {{secret:A}}')
	t.equal(await fill('{{secret:dollars}}'), "$& $1 $'")
})

void t.test('keys are unchanged', async (t) => {
	t.strictSame(await fill({ '{{secret:none}}': '{{secret:A}}' }), { '{{secret:none}}': 'value of a' })
	const filled = await fill(JSON.parse('{"__proto__": "{{secret:A}}", "constructor": {"x": "{{secret:A}}"}}'))
	t.strictSame(Object.entries(filled), [
		['__proto__', 'value of a'],
		['constructor', { x: 'value of a' }],
	])
	t.equal(Object.getPrototypeOf(filled), Object.prototype)
})

void t.test('text without a handle is unchanged, and so is the object', async (t) => {
	for (const text of [
		'{{secret:}}',
		'{{secret:a b}}',
		'{{ secret:A }}',
		'{{secret:A}',
		'{secret:A}',
		`{{secret:${'n'.repeat(129)}}}`,
		'{{SECRET:A}}',
	]) {
		const data = { text, list: [text] }
		t.equal(await fill(data), data, text)
	}
	const bytes = new Uint8Array([1])
	t.equal((await fill({ bytes, text: '{{secret:A}}' })).bytes, bytes)
})

void t.test('each secret is requested once', async (t) => {
	const requested: string[] = []
	const data = ['{{secret:A}}', '{{secret:B}} {{secret:A}}']
	await fillHandles(data, async (name) => (requested.push(name), name))
	t.strictSame(requested, ['A', 'B'])
})

void t.test('one refused secret rejects all data', async (t) => {
	await t.rejects(fill(['{{secret:A}}', '{{secret:missing}}']), /asked for missing/)
})

void t.test('the number of secrets, the size and the depth are limited', async (t) => {
	const many = Array.from({ length: 101 }, (_, n) => `{{secret:n${n}}}`)
	await t.rejects(fill(many), { code: 'invalid_arguments', message: /101 different secrets; at most 100/ })
	const large = '{{secret:L}}'.repeat(17)
	const value = async (): Promise<string> => 'x'.repeat(64 * 1024)
	await t.rejects(fillHandles(large, value), { code: 'invalid_arguments', message: /1 MiB/ })
	t.equal((await fillHandles(large.slice(0, -12), value)).length, 1024 * 1024)
	let deep: unknown = '{{secret:A}}'
	for (let level = 0; level < 100_000; level++) deep = [deep]
	await t.rejects(fill(deep), { code: 'invalid_arguments', message: /200 levels/ })
})

void t.test('putting the handles back in place of the values restores any data', async (t) => {
	// No combination of these pieces is a handle with another name, since names contain no blank.
	const string = fc
		.array(fc.constantFrom('x y', '{{secret:A}}', '{{', '}}', 'secret:', '{{secret:b.c-d_9}}', 'é😀', '"\\'))
		.map((parts) => parts.join(''))
	const { data } = fc.letrec((tie) => ({
		data: fc.oneof(
			{ maxDepth: 4 },
			string,
			fc.integer(),
			fc.constant(null),
			fc.array(tie('data'), { maxLength: 4 }),
			fc.dictionary(string, tie('data'), { maxKeys: 4, noNullPrototype: true }),
		),
	}))
	await fc.assert(
		fc.asyncProperty(data, async (before) => {
			const copy = structuredClone(before)
			const after = await fill(before)
			t.strictSame(before, copy)
			const back = (value: unknown): unknown =>
				typeof value === 'string'
					? value.replaceAll('value of a', '{{secret:A}}').replaceAll('other', '{{secret:b.c-d_9}}')
					: Array.isArray(value)
						? value.map(back)
						: typeof value === 'object' && value !== null
							? Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, back(inner)]))
							: value
			return JSON.stringify(back(after)) === JSON.stringify(before)
		}),
		{ numRuns: 200 },
	)
})
