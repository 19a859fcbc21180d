/** Calls of primitives during the call of another tool, such as a skill. */
import Joi from 'joi'
import t from 'tap'
import { openRun } from '../../../plugins/runs/run-log.ts'
import { Fault } from '../../../core/errors.ts'
import { openEventBus } from '../../../core/events/event-bus.ts'
import { openLog } from '../../../core/log/log.ts'
import type { ToolCall, ToolDefinition } from '../../../core/plugin.ts'
import { openMemory } from '../../support/memory-engine.ts'
import { noPolicy } from '../../support/policy.ts'
import { callNested } from '../../../plugins/runs/nested-call.ts'
import { callTool } from '../../../plugins/runs/tool-call.ts'

const logger = openLog({ level: 'silent', format: 'json' })
const agent = { name: 'ada', uid: 'uid-of-ada' }

/** Calls a tool that executes `work`. Returns the content of its result, and the events. */
async function inOuterCall(primitives: ToolDefinition[], work: (call: ToolCall) => unknown, run_id = 'run-1') {
	const engine = openMemory()
	const bus = openEventBus(engine.log, logger)
	const log = await openRun(bus, { run_id, agent_id: agent.name })
	const events = { called: 'skill.invoked', result: 'skill.completed', failed: 'skill.failed', payload: { skill: 's' } }
	const outer: ToolDefinition = {
		name: 'skill_s',
		description: 'Calls others.',
		events,
		repeatable: true,
		run: (_args, call) => work(call),
	}
	const site = {
		run_id,
		agent,
		conversation: 'c',
		signal: new AbortController().signal,
		log,
		result_characters: 32_768,
		policy: noPolicy,
		interrupted: false,
		attach: () => Promise.reject(new Error('no file is expected')),
		ask: () => Promise.resolve('asked'),
		forModel: (text: string) => Promise.resolve(text),
	}
	const request = { id: 'call-1', name: 'skill_s', arguments: '{}' }
	const result = await callTool([outer, ...primitives], request, site, logger)
	const { entries } = await bus.read({ run_id }, null, 100)
	const content: unknown = result.status === 'done' ? JSON.parse(result.content) : result
	return { content, emitted: entries.map(({ event }) => [event.event_type, event.payload] as const) }
}

function primitive(name: string, run: ToolDefinition['run']): ToolDefinition {
	return { name, description: name, parameters: Joi.object({ n: Joi.number() }), run }
}

const add = primitive('test.add', ({ n }) => ({ sum: Number(n) + 1 }))
const codeOf = (error: unknown): string => (error instanceof Fault ? error.code : String(error))

void t.test('the events of nested calls are between those of the outer call', async (t) => {
	const { content, emitted } = await inOuterCall([add], async (call) => [
		await callNested([add], 'test.add', { n: 1 }, call),
		await callNested([add], 'test.add', { n: 'x' }, call).catch(codeOf),
	])
	t.strictSame(content, [{ sum: 2 }, 'invalid_arguments'])
	t.match(emitted, [
		['skill.invoked', { skill: 's', call_id: 'call-1' }],
		['primitive.called', { primitive: 'test.add', call_id: /^call-1\./, arguments: '{"n":1}' }],
		['primitive.result', { primitive: 'test.add', call_id: /^call-1\./, result: '{"sum":2}' }],
		['primitive.called', { primitive: 'test.add', arguments: '{"n":"x"}' }],
		['primitive.failed', { primitive: 'test.add', code: 'invalid_arguments' }],
		['skill.completed', { skill: 's', call_id: 'call-1' }],
	])
	t.equal(emitted.length, 6)
	t.equal(emitted[1]?.[1].call_id, emitted[2]?.[1].call_id)
	t.not(emitted[1]?.[1].call_id, emitted[3]?.[1].call_id)
})

void t.test('a repeated outer call gives each of its nested calls the same unique key again', async (t) => {
	const keysOf = async (order: number[], run_id?: string): Promise<string[]> => {
		const seen: string[] = []
		const spy = primitive('test.spy', (_args, call) => void seen.push(call.key))
		await inOuterCall(
			[spy],
			async (call) => {
				for (const n of order) await callNested([spy], 'test.spy', { n }, call)
			},
			run_id,
		)
		return seen
	}
	const first = await keysOf([1, 1, 2])
	t.equal(new Set(first).size, 3)
	t.strictSame((await keysOf([2, 1, 1])).toSorted(), first.toSorted(), 'the order does not matter')
	t.strictSame(
		(await keysOf([1], 'run-2')).filter((key) => first.includes(key)),
		[],
	)
})

void t.test('only primitives can be called, by their full names, and none can pause', async (t) => {
	const events = { called: 'mcp.called', result: 'mcp.result', failed: 'mcp.failed' }
	const tools: ToolDefinition[] = [
		{ ...add, aliases: ['plus'] },
		{ ...add, name: 'mcp__a__b', events },
		primitive('test.pause', (_args, call) => call.pause({ question: 'Well?' })),
		primitive('test.ask', (_args, call) => call.ask({ question: 'Well?' })),
		primitive('test.wait', (_args, call) => call.waitFor('run-2')),
	]
	const names = ['test_add', 'plus', 'mcp__a__b', 'none', 'test.pause', 'test.ask', 'test.wait']
	const { content, emitted } = await inOuterCall(tools, (call) =>
		Promise.all(names.map((name) => callNested(tools, name, {}, call).catch(codeOf))),
	)
	const unknown = 'tool_unknown'
	const denied = 'permission_denied'
	t.strictSame(content, [unknown, unknown, unknown, unknown, denied, denied, denied])
	t.notOk(emitted.some(([type]) => type.startsWith('mcp.') || type.startsWith('question.')))
})

void t.test('an error is a Fault, and a result is plain data', async (t) => {
	const bad = primitive('test.bad', () => {
		throw new Error('broken')
	})
	const rich = primitive('test.rich', () => ({ at: new Date(0), none: undefined, self: () => 1 }))
	const { content } = await inOuterCall([bad, rich], async (call) => [
		await callNested([bad], 'test.bad', undefined, call).catch((error: Fault) => [error.code, error.message]),
		await callNested([rich], 'test.rich', {}, call),
	])
	t.strictSame(content, [['tool_failed', 'broken'], { at: '1970-01-01T00:00:00.000Z' }])
	await t.rejects(callNested([add], 'test.add', {}, {} as ToolCall), TypeError)
})
