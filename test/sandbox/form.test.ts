/** The form of an answer: its fields in the requests of each provider, and the check of answers. */
import t from 'tap'
import type { AnswerForm, ModelOrder } from '../../sandbox/order.ts'
import { problemsIn } from '../../sandbox/form/check-json.ts'
import { assertCpuTime } from '../support/cpu-time.ts'
import { messageBody } from '../../sandbox/models/anthropic.ts'
import { contentBody } from '../../sandbox/models/google.ts'
import { chatBody } from '../../sandbox/models/ollama.ts'
import { bodyOf } from '../../sandbox/models/openai.ts'
import { responseBody } from '../../sandbox/models/openai-responses.ts'
import type { ModelRequest } from '../../sandbox/models/provider.ts'

const schema = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] }
const json: AnswerForm = { json: { name: 'one', schema, strict: true } }
const order = (change: Partial<ModelOrder> = {}): ModelOrder => ({
	provider: 'p',
	kind: 'openai',
	model: 'gemini-3',
	timeout_ms: 1_000,
	...change,
})
const request = (form: AnswerForm, ...names: string[]): ModelRequest => ({
	system: null,
	turns: [{ role: 'user', content: 'Go.' }],
	tools: names.map((name) => ({ name, description: '', parameters: schema })),
	form,
})

void t.test('a JSON form uses the fields of each kind of provider', async (t) => {
	t.match(bodyOf(order(), request(json)), {
		response_format: { type: 'json_schema', json_schema: { name: 'one', schema, strict: true } },
	})
	t.match(bodyOf(order(), request({ json: { name: 'one' } })), { response_format: { type: 'json_object' } })
	t.match(responseBody(order({ params: {}, sampling: { verbosity: 'low' } }), request(json), {}), {
		text: { verbosity: 'low', format: { type: 'json_schema', name: 'one', schema, strict: true } },
	})
	const thinks = order({ params: { reasoning_effort: 'high' } })
	t.match(messageBody(thinks, request(json), { adaptive_thinking: true }), {
		output_config: { effort: 'high', format: { type: 'json_schema', schema } },
	})
	t.match(contentBody(order(), request(json), {}), {
		generationConfig: { responseMimeType: 'application/json', responseJsonSchema: schema },
	})
	t.match(chatBody(order(), request(json), {}), { format: schema })
	t.notOk('format' in chatBody(order(), request(json, 'x'), {}), 'with a format Ollama would call no tool')
	t.notOk('response_format' in bodyOf(order(), request(json), { json: false }))
})

void t.test('a forced tool call uses the fields of each kind of provider', async (t) => {
	const one: AnswerForm = { call: ['x'] }
	const two: AnswerForm = { call: ['x', 'y'] }
	t.match(bodyOf(order(), request(one, 'x')), { tool_choice: { type: 'function', function: { name: 'x' } } })
	t.match(bodyOf(order(), request(two, 'x', 'y')), { tool_choice: 'required' })
	t.match(responseBody(order(), request(one, 'x'), {}), { tool_choice: { type: 'function', name: 'x' } })
	const thinks = order({ params: { reasoning_effort: 'high', parallel_tool_calls: false } })
	const body = messageBody(thinks, request(one, 'x'), {})
	t.strictSame(body.tool_choice, { type: 'tool', name: 'x', disable_parallel_tool_use: true })
	t.notOk('thinking' in body, 'a model that thinks cannot be forced')
	t.strictSame(messageBody(order(), request(two, 'x', 'y'), {}).tool_choice, { type: 'any' })
	t.match(contentBody(order(), request(two, 'x', 'y'), {}), {
		toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['x', 'y'] } },
	})
	for (const traits of [{ forced: false as const }, { tools: false }])
		t.notOk('tool_choice' in bodyOf(order(), request(one, 'x'), traits))
})

void t.test('JSON is validated against its schema', async (t) => {
	const tree = {
		$defs: { node: { type: 'object', properties: { next: { anyOf: [{ $ref: '#/$defs/node' }, { type: 'null' }] } } } },
		$ref: '#/$defs/node',
	}
	const cases: [schema: unknown, value: unknown, problems: string[]][] = [
		[schema, { a: 'x', b: 1 }, []],
		[schema, { a: 1 }, ['a must be string']],
		[schema, [], ['the value must be object']],
		[{ ...schema, additionalProperties: false }, { a: 'x', b: 1 }, ['b is not allowed']],
		[{ type: ['string', 'null'] }, null, []],
		[{ type: 'integer' }, 1.5, ['the value must be integer']],
		[{ type: 'number', minimum: 2, multipleOf: 0.1 }, 2.3, []],
		[{ minimum: 2, multipleOf: 2 }, 1, ['the value must be at least 2', 'the value must be a multiple of 2']],
		[{ exclusiveMinimum: 1, exclusiveMaximum: 2 }, 2, ['the value must be less than 2']],
		[{ enum: ['a', 'b'] }, 'c', ['the value must be one of ["a","b"]']],
		[{ const: { a: [1] } }, { a: [1] }, []],
		[{ const: { a: [1] } }, { a: [2] }, ['the value must be {"a":[1]}']],
		[{ items: { type: 'string' }, maxItems: 1 }, ['a', 2], ['the value must have at most 1 items', '1 must be string']],
		[{ prefixItems: [{ type: 'string' }], items: false }, ['a', 2], ['1 is not allowed']],
		[{ minLength: 2 }, '😀', ['the value must have at least 2 characters']],
		[{ oneOf: [{ type: 'string' }, { minLength: 1 }] }, 'a', ['the value must fit exactly one schema of oneOf']],
		[{ allOf: [{ type: 'string' }, { not: { const: 'x' } }] }, 'x', ['the value must not fit the schema of not']],
		[tree, { next: { next: null } }, []],
		[tree, { next: { next: 3 } }, ['next must fit one of the 2 schemas of anyOf']],
		[{ $ref: '#/nowhere' }, 1, []],
		[{ $ref: 'https://example.com/other' }, 1, []],
		[{ properties: { constructor: { type: 'string' } } }, {}, []],
		[true, 1, []],
		[{ type: 'string', nullable: true }, null, []],
		[{ type: 'string', nullable: true }, 1, ['the value must be string']],
		[{ properties: { a: { type: 'float' }, b: { type: ['any', 'string'] } } }, { a: 1, b: 1 }, []],
		[{ type: 'object', properties: { a: { $ref: '#text' } }, $defs: { t: { $anchor: 'text' } } }, { a: 'x' }, []],
		[{ type: 'object', properties: { a: { $ref: '#' } } }, { a: 'x' }, ['a must be object']],
	]
	for (const [given, value, problems] of cases) t.strictSame(problemsIn(value, given), problems, JSON.stringify(given))
})

void t.test('keywords that are not checked make no valid value invalid', async (t) => {
	const cases: [schema: unknown, value: unknown][] = [
		[{ not: { type: 'string', pattern: '^x' } }, 'a'],
		[{ not: { required: ['a'], properties: { a: { format: 'uri' } } } }, { a: 'b' }],
		[{ not: { not: { not: { pattern: '^x' } } } }, 'a'],
		[{ not: { $ref: 'https://example.com/other' } }, 'a'],
		[{ oneOf: [{ pattern: '^a' }, { pattern: '^b' }] }, 'a'],
		[
			{
				oneOf: [
					{ type: 'string', format: 'uri' },
					{ type: 'string', format: 'email' },
				],
			},
			'a@example.com',
		],
		[{ oneOf: [{ if: { const: 'a' }, else: false }, { const: 'a' }, { const: 'b' }] }, 'b'],
	]
	for (const [given, value] of cases) t.strictSame(problemsIn(value, given), [], JSON.stringify(given))
	const none = ['the value must fit exactly one schema of oneOf']
	t.strictSame(problemsIn(1, { oneOf: [{ type: 'string', pattern: '^a' }, { type: 'string' }] }), none)
	t.strictSame(problemsIn('a', { oneOf: [{ minLength: 1 }, { const: 'a' }, { pattern: '^b' }] }), none)
	const long = Array.from({ length: 150_000 }, () => 1)
	t.strictSame(problemsIn(long, { not: { items: { type: 'integer' } } }), [], 'too long to check')
})

void t.test('endless schemas are not followed', async (t) => {
	t.strictSame(problemsIn(1, { $ref: '#' }), [])
	const many = { anyOf: Array.from({ length: 9 }, () => ({ $ref: '#' })) }
	t.strictSame(problemsIn(1, many), [])
	t.strictSame(problemsIn('a', { format: 'uri', allOf: [{ $ref: '#' }, { $ref: '#' }] }), [])
	const pattern = { type: 'string', pattern: '^(a+)+$' }
	t.strictSame(problemsIn(`${'a'.repeat(50)}!`, pattern), [], 'patterns are not checked')
	const long = Array.from({ length: 50_000 }, () => 'x')
	t.equal(problemsIn(long, { items: { type: 'number' } }).length, 5)
})

void t.test('the cost of a check is bounded, whatever its schema contains', async (t) => {
	const names = Array.from({ length: 10_000 }, (_, at) => `n${at}`)
	const fields = Object.fromEntries(names.slice(0, 2_000).map((name) => [name, 1]))
	const numbers = Array.from({ length: 2_000 }, () => 1)
	const cases: Record<string, [value: unknown, schema: object]> = {
		'a long reference': [numbers, { items: { $ref: `#/${'a/'.repeat(30_000)}` } }],
		'a long enum': [numbers, { items: { enum: [...names, 1] } }],
		'a long list of types': [numbers, { items: { type: names.map(() => 'number') } }],
		'a long string': ['€'.repeat(500_000), { allOf: names.slice(0, 500).map(() => ({ maxLength: 500_000 })) }],
		'many fields': [fields, { allOf: names.slice(0, 2_000).map(() => ({ properties: { n1: {} } })) }],
		'many required fields': [numbers.map(() => ({})), { items: { anyOf: [{ required: names }, {}] } }],
	}
	// The largest number of checks that one validation makes.
	const reference = () => problemsIn(Array.from({ length: 110_000 }), { items: { type: ['string', 'null', 'number'] } })
	for (const [what, [value, schema]] of Object.entries(cases))
		await assertCpuTime(t, what, { work: () => problemsIn(value, schema), reference, times: 40, floor: 20 })
})
