import Joi from 'joi'
import t from 'tap'
import { Fault } from '../../../core/errors.ts'
import { openEventBus } from '../../../core/events/event-bus.ts'
import { openLog } from '../../../core/log/log.ts'
import type { ToolCall, ToolDefinition } from '../../../core/plugin.ts'
import type { ToolCallRequest } from '../../../core/protocol.ts'
import { openRun } from '../../../plugins/runs/run-log.ts'
import type { RunLog } from '../../../plugins/runs/run-log.ts'
import { openMemory } from '../../support/memory-engine.ts'
import { noPolicy } from '../../support/policy.ts'
import type { EventEnvelope } from '../../../core/store/ports.ts'
import { answeredCall, callTool } from '../../../plugins/runs/tool-call.ts'
import type { CallResult, CallSite } from '../../../plugins/runs/tool-call.ts'
import { specOf } from '../../../plugins/runs/tool-specs.ts'
import { findTool } from '../../../sandbox/wire-name.ts'
import { eventually } from '../../support/wait.ts'

const logger = openLog({ level: 'silent', format: 'json' })
const agent = { name: 'ada', uid: 'uid-of-ada' }
const run_id = 'run-1'

const echo: ToolDefinition = {
	name: 'test.echo',
	description: 'Answers with its arguments.',
	parameters: Joi.object({ text: Joi.string().max(10).required(), times: Joi.number().integer().default(1) }),
	run: (args) => args,
}

/** A run with its log in the in-memory engine. */
async function beginRun() {
	const engine = openMemory()
	const bus = openEventBus(engine.log, logger)
	const log = await openRun(bus, { run_id, agent_id: agent.name })
	const controller = new AbortController()
	const site: CallSite = {
		run_id,
		agent,
		conversation: 'conversation-1',
		signal: controller.signal,
		log,
		ask: () => Promise.reject(new Error('nobody')),
		forModel: (text) => Promise.resolve(text),
		result_characters: 32_768,
		policy: noPolicy,
		interrupted: false,
		attach: () => Promise.reject(new Error('no file is expected')),
	}
	return {
		site,
		log,
		abort: () => controller.abort(),
		call: (tools: ToolDefinition[], request: Partial<ToolCallRequest>): Promise<CallResult> =>
			callTool(tools, { id: 'call-1', name: 'test.echo', arguments: '{}', ...request }, site, logger),
		events: async (): Promise<EventEnvelope[]> =>
			(await bus.read({ run_id }, null, 100)).entries.map((entry) => entry.event),
		steps: async (): Promise<readonly unknown[]> => (await engine.log.journal(run_id)).steps,
	}
}

function contentOf(result: CallResult): unknown {
	return result.status === 'done' ? JSON.parse(result.content) : result
}

void t.test('the result of a call is journalled together with its last event', async (t) => {
	const run = await beginRun()
	const result = await run.call([echo], { arguments: '{"text":"hi"}' })
	t.strictSame(result, { status: 'done', ok: true, content: '{"text":"hi","times":1}' })
	t.match(await run.events(), [
		{
			event_type: 'primitive.called',
			sequence: 1,
			payload: { primitive: 'test.echo', call_id: 'call-1', arguments: '{"text":"hi"}' },
		},
		{
			event_type: 'primitive.result',
			sequence: 2,
			payload: { primitive: 'test.echo', call_id: 'call-1', result: '{"text":"hi","times":1}' },
		},
	])
	t.strictSame(await run.steps(), [{ kind: 'tool', call_id: 'call-1', ok: true, content: '{"text":"hi","times":1}' }])
})

void t.test('a tool receives the place and the key of its call', async (t) => {
	const run = await beginRun()
	let seen: ToolCall | undefined
	await run.call([{ ...echo, run: (_args, call) => void (seen = call) }], { arguments: '{"text":"hi"}' })
	t.match(seen, { run_id, agent, conversation: 'conversation-1', key: `${run_id}:call-1` })
})

void t.test('the signal of a call aborts with the run, but not once the call has returned', async (t) => {
	const run = await beginRun()
	const signals: AbortSignal[] = []
	const begun = Promise.withResolvers<void>()
	const returns: ToolDefinition = { ...echo, run: (_args, call) => void signals.push(call.signal) }
	const waits: ToolDefinition = {
		...echo,
		run(_args, { signal }) {
			signals.push(signal)
			begun.resolve()
			return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)))
		},
	}
	await run.call([returns], { arguments: '{"text":"hi"}' })
	const waiting = run.call([waits], { id: 'call-2', arguments: '{"text":"hi"}' })
	await begun.promise
	run.abort()
	await t.rejects(waiting, { name: 'AbortError' })
	t.strictSame(
		signals.map(({ aborted }) => aborted),
		[false, true],
	)
})

void t.test('events of a tool are between those of the start and the end of its call', async (t) => {
	const run = await beginRun()
	const tool: ToolDefinition = {
		...echo,
		run(_args, call) {
			call.emit({ event_type: 'memory.stored', payload: { id: 'm1' } })
			return 'stored'
		},
	}
	t.match(await run.call([tool], { arguments: '{"text":"hi"}' }), { ok: true, content: 'stored' })
	const types = (await run.events()).map((event) => event.event_type)
	t.strictSame(types, ['primitive.called', 'memory.stored', 'primitive.result'])
})

void t.test('a call of an unknown tool returns the names of the tools', async (t) => {
	const run = await beginRun()
	const result = await run.call([echo], { name: 'test.nothing' })
	t.match(result, { status: 'done', ok: false })
	t.match(contentOf(result), {
		error: { code: 'tool_unknown', message: 'there is no tool "test.nothing"; there are: test.echo' },
	})
	t.match(await run.events(), [
		{ event_type: 'primitive.failed', payload: { primitive: 'test.nothing', code: 'tool_unknown' } },
	])
	t.match(await run.steps(), [{ kind: 'tool', call_id: 'call-1', ok: false }])
})

void t.test('malformed arguments never reach the tool', async (t) => {
	for (const [text, message] of [
		['{"text":', /not JSON .*; send one JSON object/],
		['nothing', /not JSON/],
		['[]', /must be one JSON object/],
		['null', /must be one JSON object/],
		['"text"', /must be one JSON object/],
		['7', /must be one JSON object/],
	] as const) {
		const run = await beginRun()
		let calls = 0
		const result = await run.call([{ ...echo, run: () => ++calls }], { arguments: text })
		t.match(result, { status: 'done', ok: false }, text)
		t.match(contentOf(result), { error: { code: 'invalid_arguments', message } }, text)
		t.equal(calls, 0, text)
	}
})

void t.test('arguments that do not match the schema never reach the tool', async (t) => {
	for (const [args, message] of [
		[{}, /"text" is required/],
		[{ text: 7 }, /"text" must be a string/],
		[{ text: 'x'.repeat(11) }, /"text" length must be less than or equal to 10/],
		[{ text: 'hi', times: '2' }, /"times" must be a number/],
		[{ text: 'hi', colour: 'red' }, /"colour" is not allowed/],
		[{ text: 7, times: 'x' }, /"text" must be a string.*"times" must be a number/],
	] as const) {
		const run = await beginRun()
		let calls = 0
		const result = await run.call([{ ...echo, run: () => ++calls }], { arguments: JSON.stringify(args) })
		t.match(contentOf(result), { error: { code: 'invalid_arguments', message } }, JSON.stringify(args))
		t.match(await run.events(), [{ event_type: 'primitive.called' }, { event_type: 'primitive.failed' }])
		t.equal(calls, 0)
	}
})

void t.test('arguments cannot change a prototype', async (t) => {
	const own = await beginRun()
	let seen: Record<string, unknown> = {}
	await own.call([{ ...echo, run: (args) => void (seen = args) }], { arguments: '{"text":"hi","__proto__":{"x":9}}' })
	t.strictSame(seen, { text: 'hi', times: 1 })
	t.notOk('x' in seen)

	const shared = await beginRun()
	const result = await shared.call([echo], { arguments: '{"text":"hi","constructor":{"prototype":{"x":9}}}' })
	t.match(contentOf(result), { error: { code: 'invalid_arguments', message: /"constructor" is not allowed/ } })
	t.notOk('x' in {})
})

void t.test('empty arguments are an empty object', async (t) => {
	const run = await beginRun()
	let seen: unknown
	await run.call([{ name: 'test.now', description: '', run: (args) => void (seen = args) }], {
		name: 'test.now',
		arguments: ' ',
	})
	t.strictSame(seen, {})
})

void t.test('a tool with a JSON Schema checks its arguments itself', async (t) => {
	const run = await beginRun()
	const parameters = { type: 'object', properties: { n: { type: 'integer' } } }
	const tool: ToolDefinition = { ...echo, parameters }
	t.match(await run.call([tool], { arguments: '{"n":"seven"}' }), { ok: true, content: '{"n":"seven"}' })
	t.strictSame(specOf(tool).parameters, parameters)
})

void t.test('the model receives the code and message of a fault, and tool_failed for other errors', async (t) => {
	const first = await beginRun()
	const fault = (): never => {
		throw new Fault('conflict', 'the slug is taken; choose another one')
	}
	const args = { arguments: '{"text":"hi"}' }
	t.strictSame(contentOf(await first.call([{ ...echo, run: fault }], args)), {
		error: { code: 'conflict', message: 'the slug is taken; choose another one' },
	})
	t.match((await first.events()).at(-1), {
		event_type: 'primitive.failed',
		payload: { primitive: 'test.echo', call_id: 'call-1', code: 'conflict' },
	})
	const second = await beginRun()
	const bug = (): Promise<never> => Promise.reject(new TypeError('x is undefined'))
	t.match(contentOf(await second.call([{ ...echo, run: bug }], args)), { error: { code: 'tool_failed' } })
})

void t.test('a result that is not plain data fails the call', async (t) => {
	const cycle: Record<string, unknown> = {}
	cycle.self = cycle
	for (const value of [cycle, 7n]) {
		const run = await beginRun()
		const result = await run.call([{ ...echo, run: () => value }], { arguments: '{"text":"hi"}' })
		t.match(contentOf(result), { error: { code: 'tool_failed' } })
	}
})

void t.test('a missing result is null, and text is unchanged', async (t) => {
	for (const [value, content] of [
		[undefined, 'null'],
		[null, 'null'],
		['plain', 'plain'],
		[['a'], '["a"]'],
	] as const) {
		const run = await beginRun()
		t.match(await run.call([{ ...echo, run: () => value }], { arguments: '{"text":"hi"}' }), { ok: true, content })
	}
})

void t.test('a paused call has no result until it is answered', async (t) => {
	const run = await beginRun()
	const tool: ToolDefinition = { ...echo, run: (_args, call) => call.pause({ question: 'Blue?', options: ['yes'] }) }
	const request = { id: 'call-7', name: 'test.echo', arguments: '{"text":"hi"}' }
	t.strictSame(await run.call([tool], request), {
		status: 'waits',
		wait: { question: 'Blue?', options: ['yes'] },
	})
	t.strictSame(await run.steps(), [], 'no result yet')
	t.strictSame(
		(await run.events()).map((event) => event.event_type),
		['primitive.called'],
	)

	const { event, step } = answeredCall([tool], request, { answer: 'no, "green"' }, run.site)
	await run.log.append([event], step)
	t.match((await run.events()).at(-1), {
		event_type: 'primitive.result',
		payload: { primitive: 'test.echo', call_id: 'call-7', result: '{"answer":"no, \\"green\\""}' },
	})
	t.strictSame(await run.steps(), [
		{ kind: 'tool', call_id: 'call-7', ok: true, content: '{"answer":"no, \\"green\\""}' },
	])
})

void t.test('an answer completes its call also if the tool was removed', async (t) => {
	const run = await beginRun()
	const { event } = answeredCall([], { id: 'call-7', name: 'test.gone', arguments: '{}' }, 'yes', run.site)
	t.match(event, { event_type: 'primitive.result', payload: { primitive: 'test.gone', call_id: 'call-7' } })
})

void t.test('a paused call can fail', async (t) => {
	const run = await beginRun()
	const request = { id: 'call-7', name: 'test.echo', arguments: '{"text":"hi"}' }
	const { event, step } = answeredCall([echo], request, new Fault('subagent_failed', 'it was stopped'), run.site)
	t.match(event, { event_type: 'primitive.failed', payload: { code: 'subagent_failed', message: 'it was stopped' } })
	t.match(step, { ok: false, content: '{"error":{"code":"subagent_failed","message":"it was stopped"}}' })
})

void t.test('a long result is abridged for the model and truncated in the event, with its size', async (t) => {
	const run = await beginRun()
	const result = await run.call([{ ...echo, run: () => 'a'.repeat(100_000) }], { arguments: '{"text":"hi"}' })
	const content = result.status === 'done' ? result.content : ''
	const note =
		'[… 67232 of 100000 characters are omitted here; read on with conversation_read {"result_id":"run-1:call-1","offset":24576} …]'
	t.equal(content, `${'a'.repeat(24_576)}\n${note}\n${'a'.repeat(8_192)}`)
	t.strictSame(await run.steps(), [{ kind: 'tool', call_id: 'call-1', ok: true, content, size: 100_000 }])
	const shown = String((await run.events()).at(-1)?.payload.result)
	t.equal(shown, `${'a'.repeat(16_384)}… [cut: ${100_000 - 16_384} more characters]`)
})

void t.test('long arguments and errors are truncated in the event', async (t) => {
	const run = await beginRun()
	const fail = (): never => {
		throw new Fault('conflict', 'b'.repeat(100_000))
	}
	const text = JSON.stringify({ text: 'a'.repeat(90_000) })
	const result = await run.call([{ ...echo, parameters: { type: 'object' }, run: fail }], { arguments: text })
	const [called, failed] = await run.events()
	t.ok(String(called?.payload.arguments).length < 17_000)
	t.match(called?.payload.arguments, /cut: /)
	t.ok(String(failed?.payload.message).length < 17_000)
	t.ok(result.status === 'done' && result.content.length < 66_000)
})

void t.test('the start of a call that must not be repeated is journalled', async (t) => {
	const run = await beginRun()
	let before: readonly unknown[] = []
	const tool: ToolDefinition = {
		...echo,
		repeatable: false,
		async run() {
			before = await run.steps()
			return 'done'
		},
	}
	await run.call([tool], { arguments: '{"text":"hi"}' })
	t.strictSame(before, [{ kind: 'begun', call_id: 'call-1' }], 'the step is durable when the tool begins')
	t.match(await run.steps(), [{ kind: 'begun' }, { kind: 'tool', ok: true }])
})

void t.test('a tool with custom events is not repeatable by default', async (t) => {
	const events = {
		called: 'mcp.called',
		result: 'mcp.result',
		failed: 'mcp.failed',
		payload: { server: 'files', tool: 'read' },
	}
	const first = await beginRun()
	await first.call([{ ...echo, events }], { arguments: '{"text":"hi"}' })
	t.match(await first.steps(), [{ kind: 'begun' }, { kind: 'tool' }])
	const emitted = await first.events()
	t.strictSame(
		emitted.map((event) => event.event_type),
		['mcp.called', 'mcp.result'],
	)
	for (const { payload } of emitted) t.match(payload, { server: 'files', tool: 'read', call_id: 'call-1' })

	const second = await beginRun()
	await second.call([{ ...echo, events, repeatable: true }], { arguments: '{"text":"hi"}' })
	t.match(await second.steps(), [{ kind: 'tool' }])
})

void t.test('an interrupted call is not repeated, and its result states that the outcome is unknown', async (t) => {
	const run = await beginRun()
	let calls = 0
	const tool: ToolDefinition = { ...echo, repeatable: false, run: () => ++calls }
	const request = { id: 'call-1', name: 'test.echo', arguments: '{"text":"hi"}' }
	const result = await callTool([tool], request, { ...run.site, interrupted: true }, logger)
	t.match(contentOf(result), { error: { code: 'tool_interrupted', message: /outcome is unknown/ } })
	t.equal(calls, 0)
	t.match(await run.steps(), [{ kind: 'tool', call_id: 'call-1', ok: false }])
})

void t.test('a result that arrives after the log was closed is discarded', async (t) => {
	const run = await beginRun()
	const { promise, resolve } = Promise.withResolvers<string>()
	const call = run.call([{ ...echo, run: () => promise }], { arguments: '{"text":"hi"}' })
	await eventually(run.events, ({ length }) => length > 0)
	run.log.close()
	resolve('late')
	await t.rejects(call, { code: 'stopped' })
	t.strictSame(
		(await run.events()).map((event) => event.event_type),
		['primitive.called'],
	)
	t.strictSame(await run.steps(), [])
})

void t.test('a log that cannot be written fails the call', async (t) => {
	const run = await beginRun()
	const failing: RunLog = {
		...run.log,
		append: () => Promise.reject(new Fault('storage_full', 'the disk is full')),
	}
	const request = { id: 'call-1', name: 'test.echo', arguments: '{"text":"hi"}' }
	await t.rejects(callTool([echo], request, { ...run.site, log: failing }, logger), { code: 'storage_full' })
})

void t.test('a tool is found by its name, by the name that a model sees, and by an alias', async (t) => {
	const tools: ToolDefinition[] = [
		{ ...echo, name: 'memory.stm_read' },
		{ ...echo, name: 'skill__weather', aliases: ['Weather report'] },
		{ ...echo, name: 'memory_stm_read' },
	]
	t.equal(findTool(tools, 'memory.stm_read'), tools[0])
	t.equal(findTool(tools, 'memory_stm_read'), tools[2], 'the exact name takes precedence')
	t.equal(findTool(tools.slice(0, 2), 'memory_stm_read'), tools[0])
	t.equal(findTool(tools, 'Weather report'), tools[1])
	t.equal(findTool(tools, 'weather'), undefined)
})

void t.test('arguments with very many errors are rejected with the first one', async (t) => {
	const run = await beginRun()
	const list: ToolDefinition = { ...echo, parameters: Joi.object({ texts: Joi.array().items(Joi.string()) }) }
	const messageOf = async (count: number): Promise<string> => {
		const result = await run.call([list], { arguments: JSON.stringify({ texts: Array(count).fill(1) }) })
		return (contentOf(result) as { error: { message: string } }).error.message
	}
	t.match(await messageOf(2), /"texts\[0\]" must be a string. "texts\[1\]" must be a string$/)
	t.match(await messageOf(50_000), /are wrong: "texts\[0\]" must be a string$/)
})

void t.test('the JSON Schema of a tool rejects unknown keys', async (t) => {
	t.strictSame(specOf(echo), {
		name: 'test.echo',
		description: 'Answers with its arguments.',
		parameters: {
			type: 'object',
			properties: { text: { type: 'string' }, times: { type: 'integer', default: 1 } },
			required: ['text'],
			additionalProperties: false,
		},
	})
	const pattern = Joi.array().max(3).unique().items(Joi.string().pattern(/^a/).min(2))
	const sized = Joi.object({ pattern, maxLength: Joi.number().min(1) }).required()
	t.strictSame(
		specOf({ ...echo, parameters: sized }).parameters.properties,
		{ pattern: { type: 'array', items: { type: 'string' } }, maxLength: { type: 'number', minimum: 1 } },
		'lengths and patterns are checked, but omitted to save tokens',
	)
	const own = { type: 'object', properties: { text: { type: 'string', maxLength: 10 } } }
	t.equal(specOf({ ...echo, parameters: own }).parameters, own, 'a JSON Schema is unchanged')
	t.strictSame(specOf({ name: 'test.now', description: '', run: () => null }).parameters, {
		type: 'object',
		properties: {},
		additionalProperties: false,
	})
	t.strictSame(specOf({ ...echo, aliases: ['e'] }).aliases, ['e'])
	t.equal(specOf({ ...echo, description: 'd'.repeat(10_000) }).description.length, 4096)
})
