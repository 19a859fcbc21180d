import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import { Fault } from '../../core/errors.ts'
import type { ModelAnswer, NewEvent, Remark, RunOrder, RunOutcome, Step, ToolReply } from '../../core/protocol.ts'
import { runLoop } from '../../sandbox/loop.ts'
import type { AskModel } from '../../sandbox/ask-model.ts'
import type { Link } from '../../sandbox/link.ts'
import type { ModelReply, ModelRequest } from '../../sandbox/models/provider.ts'

void t.test('an answer without tool calls completes the run without a separate journal step', async (t) => {
	const world = makeWorld([text('Hello.')])
	const outcome = await world.run()
	t.match(outcome, {
		status: 'completed',
		answer: { content: 'Hello.' },
		usage: { input_tokens: 10, output_tokens: 5 },
	})
	t.strictSame(world.calls, [])
})

void t.test('a request contains the persona, the earlier turns, the prompt and the tools', async (t) => {
	const world = makeWorld([text('Yes.')])
	const history = [
		{ role: 'user' as const, content: 'Before?' },
		{ role: 'assistant' as const, content: 'Before.' },
	]
	await world.run({ system: 'Be brief.', history, prompt: 'Now?' })
	t.strictSame(world.requests, [
		{
			system: 'Be brief.',
			turns: [
				{ role: 'user', content: 'Before?' },
				{ role: 'assistant', content: 'Before.', tool_calls: [] },
				{ role: 'user', content: 'Now?' },
			],
			tools: [],
		},
	])
})

void t.test('an answer with tool calls is durable before the first tool is called', async (t) => {
	const world = makeWorld([call('a'), text('Done.')])
	const durable = Promise.withResolvers<null>()
	world.onModel = () => durable.promise
	const running = world.run()
	await world.called('model')
	t.strictSame(world.calls, ['model'])
	durable.resolve(null)
	t.match(await running, { status: 'completed' })
	t.strictSame(world.calls, ['model', 'tool a'])
})

void t.test('the tool calls of an answer run in order, one at a time', async (t) => {
	const world = makeWorld([call('a', 'b', 'c'), text('Done.')])
	let atOnce = 0
	world.onTool = async (id) => {
		t.equal(++atOnce, 1)
		await Promise.resolve()
		atOnce--
		return { status: 'done', ok: true, content: `result of ${id}` }
	}
	await world.run()
	t.strictSame(world.calls, ['model', 'tool a', 'tool b', 'tool c'])
	t.strictSame(
		world.requests[1]?.turns.slice(1).map((turn) => [turn.role, turn.content]),
		[
			['assistant', ''],
			['tool', 'result of a'],
			['tool', 'result of b'],
			['tool', 'result of c'],
		],
	)
})

void t.test(
	'a run continues from any prefix of its journal to the same outcome, and repeats no finished step',
	async (t) => {
		const script = [call('a'), call('b', 'c'), call('d'), text('The end.')]
		const complete = makeWorld(script)
		const outcome = await complete.run()
		t.equal(complete.journal.length, 7)
		for (let length = 0; length <= complete.journal.length; length++) {
			const resumed = makeWorld(script)
			resumed.journal.push(...complete.journal.slice(0, length))
			t.strictSame(await resumed.run(), outcome, `the same outcome after ${length} steps`)
			t.strictSame(resumed.journal, complete.journal, `the same journal after ${length} steps`)
			t.strictSame(
				resumed.calls,
				complete.calls.slice(length),
				`only unfinished steps are executed after ${length} steps`,
			)
			t.strictSame(resumed.requests.at(-1), complete.requests.at(-1), `the same request after ${length} steps`)
		}
	},
)

void t.test('a journal that ends with a final answer completes the run without a model call', async (t) => {
	const world = makeWorld([])
	world.journal.push({ kind: 'model', answer: text('Done before.') })
	t.match(await world.run(), { status: 'completed', answer: { content: 'Done before.' }, usage: { input_tokens: 10 } })
	t.strictSame(world.requests, [])
})

void t.test(
	'a tool that waits for an answer pauses the run, which continues after that call once it is answered',
	async (t) => {
		const world = makeWorld([call('a', 'ask', 'b'), text('Done.')])
		world.onTool = (id) =>
			Promise.resolve(id === 'ask' ? { status: 'paused', waits_for: 'q1' } : { status: 'done', ok: true, content: id })
		t.strictSame(await world.run(), { status: 'paused', waits_for: 'q1' })
		world.journal.push({ kind: 'tool', call_id: 'ask', ok: true, content: '{"answer":"yes"}' })
		t.match(await world.run(), { status: 'completed' })
		t.strictSame(world.calls, ['model', 'tool a', 'tool ask', 'tool b'])
	},
)

void t.test('the model sees the result of a failed tool', async (t) => {
	const world = makeWorld([call('a'), text('I see.')])
	world.onTool = () => Promise.resolve({ status: 'done', ok: false, content: '{"error":{"code":"tool_failed"}}' })
	t.match(await world.run(), { status: 'completed' })
	t.match(world.requests[1]?.turns.at(-1), { role: 'tool', ok: false, content: '{"error":{"code":"tool_failed"}}' })
})

void t.test('call ids that a server reuses become unique within the run', async (t) => {
	const world = makeWorld([
		call('x', 'x'),
		call('x'),
		answer('', [{ id: '', name: 'tool', arguments: '{}' }]),
		text('Done.'),
	])
	await world.run()
	const ids = world.journal.flatMap((step) =>
		step.kind === 'model' ? step.answer.tool_calls.map((one) => one.id) : [],
	)
	t.equal(ids.length, 4)
	t.equal(new Set(ids).size, 4)
	t.equal(ids[0], 'x')
	t.notOk(ids.includes(''))
	t.strictSame(
		world.journal.flatMap((step) => (step.kind === 'tool' ? [step.call_id] : [])),
		ids,
	)
})

void t.test('calls of client tools end the run, after the other calls of the answer were executed', async (t) => {
	const named = (...names: string[]) => names.map((name) => ({ id: name, name, arguments: '{}' }))
	const both = answer('Wait.', named('theirs', 'tool', 'theirs_too'))
	const clients = { client_tools: ['theirs', 'theirs_too'] }

	const clientOnly = makeWorld([answer('', named('theirs'))])
	t.match(await clientOnly.run(clients), { status: 'completed', answer: { tool_calls: named('theirs') } })
	t.strictSame(clientOnly.calls, [])

	const mixed = makeWorld([both])
	t.match(await mixed.run({ ...clients, limits: { steps: 1, tokens: 15, wall_time_s: 60 } }), {
		status: 'completed',
		answer: { content: '', tool_calls: named('theirs', 'theirs_too') },
		usage: { input_tokens: 10, output_tokens: 5 },
	})
	t.strictSame(mixed.calls, ['model', 'tool tool'])
	t.match(mixed.journal[0], { kind: 'model', answer: { content: 'Wait.', tool_calls: named('tool') } })

	const single = makeWorld([both])
	t.match(await single.run({ ...clients, one_call: true }), { answer: { tool_calls: named('theirs') } })
})

void t.test('messages since the prompt follow it, and their call ids are not reused', async (t) => {
	const world = makeWorld([call('a'), text('Done.')])
	await world.run({
		since: [
			{ role: 'assistant', content: '', tool_calls: [{ id: 'a', name: 'theirs', arguments: '{}' }] },
			{ role: 'tool', call_id: 'a', name: 'theirs', ok: true, content: 'earlier' },
		],
	})
	t.strictSame(
		world.requests[0]?.turns.map(({ role, content }) => [role, content]),
		[
			['user', 'Go.'],
			['assistant', ''],
			['tool', 'earlier'],
		],
	)
	t.equal(world.calls.length, 2)
	t.not(world.calls[1], 'tool a')
})

void t.test('a remark follows an answer that ends these messages, also when the run is resumed', async (t) => {
	const since = [{ role: 'assistant' as const, content: 'Once upon a time' }]
	const world = makeWorld([call('a'), text(' there was.')])
	world.journal.push({ kind: 'model', answer: call('a') }, { kind: 'tool', call_id: 'a', ok: true, content: 'found' })
	t.match(await world.run({ since }), { status: 'completed', answer: { content: ' there was.' } })
	t.match(
		world.requests.map(({ turns }) => turns),
		[
			[
				{ role: 'user', content: 'Go.' },
				{ role: 'assistant', content: 'Once upon a time' },
				{
					role: 'user',
					content: /^\[Remark of the gateway: .* continue exactly where it ended, and repeat nothing\.\]$/,
				},
				{ role: 'assistant', tool_calls: [{ id: 'a' }] },
				{ role: 'tool', content: 'found' },
			],
		],
	)
	t.equal(world.requests[0]?.turns.length, 5)

	const formed = makeWorld([text('{}')])
	await formed.run({ since, form: { json: { name: 'answer' } } })
	t.match(formed.requests[0]?.turns.at(-1), { role: 'user', content: /Give it again in the form/ })
})

void t.test('limits', async (t) => {
	void t.test('the last model call has no tools, and its answer ends the run', async (t) => {
		const world = makeWorld([call('a'), call('b'), text('As far as I came.')])
		const tools = [{ name: 'tool', description: '', parameters: {} }]
		const limits = { steps: 3, tokens: 1_000, wall_time_s: 60 }
		t.match(await world.run({ tools, limits }), {
			status: 'completed',
			answer: { content: 'As far as I came.' },
			ended_by: 'limit_steps',
			usage: { input_tokens: 30, output_tokens: 15 },
		})
		t.strictSame(world.calls, ['model', 'tool a', 'model', 'tool b', 'remark'])
		t.strictSame(
			world.requests.map((request) => request.tools.length),
			[1, 1, 0],
		)
		t.match(world.requests[2]?.turns.at(-1), {
			role: 'tool',
			content: /^result of b\n\n\[Remark of the gateway: This is the last call/,
		})
	})

	void t.test('a last call that calls tools nevertheless fails the run with the limit', async (t) => {
		const world = makeWorld([call('a'), call('b'), text('Never said.')])
		const outcome = await world.run({ limits: { steps: 2, tokens: 1_000, wall_time_s: 60 } })
		t.match(outcome, {
			status: 'failed',
			error: { code: 'limit_steps' },
			usage: { input_tokens: 20, output_tokens: 10 },
		})
		t.match(message(outcome), /made 2 model calls, its limit is 2; raise config\.limits\.steps/)
		t.strictSame(world.calls, ['model', 'tool a', 'remark'])

		const failing = makeWorld([call('a')])
		failing.ask = (_request, { step }) =>
			Promise.resolve(
				step === 1
					? { status: 'answered', answer: call('a') }
					: { status: 'failed', failure: { code: 'model_unavailable', message: 'away', retryable: false } },
			)
		const lastFailed = await failing.run({ limits: { steps: 2, tokens: 1_000, wall_time_s: 60 } })
		t.match(lastFailed, { error: { code: 'limit_steps', message: /its last call failed: away/ } })
	})

	void t.test('a run limited to one model call has tools in it', async (t) => {
		const limits = { steps: 1, tokens: 1_000, wall_time_s: 60 }
		t.match(await makeWorld([text('Hi.')]).run({ limits }), { status: 'completed', answer: { content: 'Hi.' } })
		const world = makeWorld([call('a')])
		t.match(await world.run({ limits }), { status: 'failed', error: { code: 'limit_steps' } })
		t.strictSame(world.calls, ['model', 'tool a'])
	})

	void t.test('the tokens of the journal count, and one last call follows the limit', async (t) => {
		const world = makeWorld([call('a'), call('b'), text('Enough.')])
		world.journal.push({ kind: 'model', answer: call('a') }, { kind: 'tool', call_id: 'a', ok: true, content: '' })
		const outcome = await world.run({ limits: { steps: 50, tokens: 30, wall_time_s: 60 } })
		t.match(outcome, { status: 'completed', ended_by: 'limit_tokens', usage: { input_tokens: 30, output_tokens: 15 } })
		t.strictSame(world.calls, ['model', 'tool b', 'remark'])

		const spent = makeWorld([text('Never said.')])
		const refused = await spent.run({ limits: { steps: 50, tokens: 30, wall_time_s: 60 }, tokens_elsewhere: 30 })
		t.match(message(refused), /used 30 tokens, its limit is 30; raise config\.limits\.tokens/)
		t.strictSame(spent.requests, [])
	})

	void t.test('the model is told once that a limit is near', async (t) => {
		const ids = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i']
		const world = makeWorld([...ids.map((id) => call(id)), text('Done.')])
		t.match(await world.run({ limits: { steps: 10, tokens: 1_000, wall_time_s: 60 } }), { ended_by: 'limit_steps' })
		const remarks = world.journal.flatMap((step) => (step.kind === 'remark' ? [step.content] : []))
		t.equal(remarks.length, 2)
		t.match(remarks, [/^This run has made 8 of its 10 model calls/, /^This is the last call/])

		const spending = makeWorld([...ids.map((id) => call(id)), text('Done.')])
		t.match(await spending.run({ limits: { steps: 50, tokens: 151, wall_time_s: 60 } }), { status: 'completed' })
		t.match(
			spending.journal.flatMap((step) => (step.kind === 'remark' ? [step.content] : [])),
			[/^This run has used 135 of its 151 tokens/],
		)
	})

	void t.test('the last part of the wall time is reserved for a last call', async (t) => {
		const world = makeWorld([call('a'), text('In a hurry.')])
		const limits = { steps: 50, tokens: 1_000, wall_time_s: 1_000 }
		t.match(await world.run({ limits, remaining_ms: 90_000 }), {
			status: 'completed',
			answer: { content: 'In a hurry.' },
			ended_by: 'limit_wall_time',
		})
	})

	void t.test('the wall time limit aborts the current model call', async (t) => {
		const world = makeWorld([])
		world.ask = (_request, { signal }) =>
			new Promise((resolve) =>
				signal.addEventListener('abort', () =>
					resolve({ status: 'failed', failure: { code: 'model_interrupted', message: 'aborted', retryable: false } }),
				),
			)
		const outcome = await world.run({ remaining_ms: 20, limits: { steps: 5, tokens: 100, wall_time_s: 7 } })
		t.match(outcome, { status: 'failed', error: { code: 'limit_wall_time' } })
		t.match(message(outcome), /limit of 7 s; raise config\.limits\.wall_time_s of the agent$/)
	})

	void t.test('a run that ends while its model is not available says so', async (t) => {
		const world = makeWorld([])
		world.ask = async (_request, { signal, emit }) => {
			const payload = {
				provider: 'main',
				model: 'm',
				attempt: 1,
				delay_ms: 5_000,
				code: 'model_unavailable',
				message: 'no server',
			}
			emit({ event_type: 'model.retry', payload })
			await new Promise((resolve) => signal.addEventListener('abort', resolve))
			return { status: 'failed', failure: { code: 'model_unavailable', message: 'no server', retryable: true } }
		}
		const outcome = await world.run({ remaining_ms: 20 })
		t.match(outcome, { status: 'failed', error: { code: 'limit_wall_time' } })
		t.match(message(outcome), /wall_time_s of the agent; its model call kept failing: main: no server$/)
	})

	void t.test('the time for which a tool waits for a person does not count', async (t) => {
		const world = makeWorld([call('a'), text('Done.')])
		world.onTool = async () => {
			await pause(1_600)
			return { status: 'done', ok: true, content: '', waited_ms: 10_000 }
		}
		// Longer than a busy machine takes until the tool is called.
		t.match(await world.run({ remaining_ms: 1_500 }), { status: 'completed' })
		const late = makeWorld([call('a'), text('Never said.')])
		late.onTool = async () => {
			await pause(40)
			return { status: 'done', ok: true, content: '', waited_ms: 1 }
		}
		t.match(await late.run({ remaining_ms: 20 }), { status: 'failed', error: { code: 'limit_wall_time' } })
	})

	void t.test('the time for which a model call waits for a slot does not count', async (t) => {
		const world = makeWorld([])
		world.onSlot = () => pause(1_600, null)
		world.ask = async (_request, { slot }) => {
			const leave = await slot?.({ provider: 'scripted', model: 'm' })
			leave?.()
			return { status: 'answered', answer: text('Done.') }
		}
		// Longer than a busy machine takes until the slot is requested.
		t.match(await world.run({ remaining_ms: 1_500 }), { status: 'completed' })
		t.strictSame(world.calls, ['leave_slot'])

		const late = makeWorld([])
		late.ask = async (_request, { slot, signal }) => {
			await slot?.({ provider: 'scripted', model: 'm' })
			if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve))
			return { status: 'failed', failure: { code: 'model_interrupted', message: 'aborted', retryable: false } }
		}
		t.match(await late.run({ remaining_ms: 20 }), { status: 'failed', error: { code: 'limit_wall_time' } })
	})

	void t.test('tokens of sub-agents count if the order contains them', async (t) => {
		const world = makeWorld([call('a'), call('b')])
		const limits = { steps: 50, tokens: 30, wall_time_s: 60 }
		const outcome = await world.run({ limits, tokens_elsewhere: 20 })
		t.match(message(outcome), /the run and its sub-agents used 35 tokens, its limit is 30/)
		t.match(outcome, { error: { code: 'limit_tokens' }, usage: { input_tokens: 20, output_tokens: 10 } })
	})

	void t.test('a run without remaining wall time makes no model call', async (t) => {
		const world = makeWorld([text('Never said.')])
		t.match(await world.run({ remaining_ms: 0 }), { status: 'failed', error: { code: 'limit_wall_time' } })
		t.strictSame(world.requests, [])
	})
})

void t.test('calls of one answer', async (t) => {
	const concurrent = { concurrent_tools: ['tool'] }
	const done = (id: string): ToolReply => ({ status: 'done', ok: true, content: `result of ${id}` })

	void t.test('run at the same time if their tools permit it, and the model sees the results in order', async (t) => {
		const world = makeWorld([call('a', 'b', 'c'), text('Done.')])
		const lastCalled = Promise.withResolvers<void>()
		world.onTool = async (id) => {
			if (id === 'c') lastCalled.resolve()
			else await lastCalled.promise
			return done(id)
		}
		t.match(await world.run(concurrent), { status: 'completed' })
		t.match(world.journal[1], { call_id: 'c' }, 'results are journalled in the order of their completion')
		const results = world.requests[1]?.turns.flatMap((turn) => (turn.role === 'tool' ? [turn.call_id] : []))
		t.strictSame(results, ['a', 'b', 'c'])
	})

	void t.test('run at most 8 at a time', async (t) => {
		const ids = Array.from({ length: 20 }, (_, at) => `c${at}`)
		const world = makeWorld([call(...ids), text('Done.')])
		let now = 0
		let most = 0
		world.onTool = async (id) => {
			most = Math.max(most, ++now)
			await pause(1)
			now--
			return done(id)
		}
		await world.run(concurrent)
		t.equal(most, 8)
		t.equal(world.calls.length, 21)
	})

	void t.test('run alone if a tool is not concurrent: after earlier calls, before later ones', async (t) => {
		const calls = ['tool', 'tool', 'alone', 'tool'].map((name, at) => ({ id: `${name}${at}`, name, arguments: '{}' }))
		const world = makeWorld([answer('', calls), text('Done.')])
		const active = new Set<string>()
		world.onTool = async (id) => {
			if (id === 'alone2') t.strictSame([...active], [])
			t.notOk(active.has('alone2'))
			active.add(id)
			await pause(2)
			active.delete(id)
			return done(id)
		}
		await world.run(concurrent)
		t.strictSame(world.calls.slice(1), ['tool tool0', 'tool tool1', 'tool alone2', 'tool tool3'])
	})

	void t.test('are repeated after a crash only if unfinished', async (t) => {
		const script = [call('a', 'b', 'c'), text('Done.')]
		const complete = makeWorld(script)
		await complete.run(concurrent)
		const resumed = makeWorld(script)
		resumed.journal.push(...complete.journal.slice(0, 1), {
			kind: 'tool',
			call_id: 'b',
			ok: true,
			content: 'result of b',
		})
		await resumed.run(concurrent)
		t.strictSame(resumed.calls, ['tool a', 'tool c'])
		t.strictSame(resumed.requests.at(-1), complete.requests.at(-1))
	})

	void t.test('pause the run if one waits, once the others have ended', async (t) => {
		const world = makeWorld([call('a', 'b', 'c')])
		world.onTool = async (id) => {
			if (id !== 'b') await pause(2)
			return id === 'b' ? { status: 'paused', waits_for: 'r2' } : done(id)
		}
		t.strictSame(await world.run(concurrent), { status: 'paused', waits_for: 'r2' })
		t.equal(world.journal.length, 3)
	})

	void t.test('fail the run, not the process, if the main thread fails', async (t) => {
		const world = makeWorld([call('a', 'b', 'c')])
		world.onTool = (id) => Promise.reject(new Fault('storage_full', `no room for ${id}`))
		t.match(await world.run(concurrent), { status: 'failed', error: { code: 'storage_full' } })
	})
})

void t.test('repeated calls with the same result lead to a remark, then end the run', async (t) => {
	const same = Array.from({ length: 6 }, (_, at) => call(`c${at}`))
	const world = makeWorld([...same, text('I got nowhere.')])
	world.onTool = () => Promise.resolve({ status: 'done', ok: true, content: 'the same' })
	t.match(await world.run(), { answer: { content: 'I got nowhere.' }, ended_by: 'repeated_calls' })
	const made = world.calls.filter((name) => name !== 'model').map((name) => name.slice(0, 6).trim())
	t.strictSame(made, ['tool c', 'tool c', 'tool c', 'remark', 'tool c', 'tool c', 'tool c', 'remark'])

	const other = makeWorld([...same, text('Fine.')])
	t.match(await other.run(), { status: 'completed', answer: { content: 'Fine.' } })
	t.notOk(other.calls.includes('remark'), 'different results are progress')
})

void t.test('incomplete answers', async (t) => {
	const empty = (change: Partial<ModelAnswer> = {}): ModelAnswer => ({ ...text(''), ...change })
	const cut = (content: string): ModelAnswer => ({ ...text(content), finish_reason: 'length' })
	/** A model that gives its answers in order, whatever the step. */
	const inTurn = (...script: ModelAnswer[]): World => {
		const world = makeWorld([])
		world.ask = () => Promise.resolve({ status: 'answered', answer: script[world.requests.length - 1] as ModelAnswer })
		return world
	}

	void t.test('an empty answer is retried, the second time with a remark', async (t) => {
		const world = inTurn(empty(), empty({ content: ' \n', reasoning: 'Hm.' }), text('Here.'))
		t.match(await world.run(), {
			status: 'completed',
			answer: { content: 'Here.' },
			usage: { input_tokens: 30, output_tokens: 15 },
		})
		t.equal(world.requests[1]?.turns.length, 1)
		t.match(world.requests[2]?.turns.at(-1), { role: 'user', content: /your answer was empty/ })
		t.match(
			world.events.map(({ event_type, payload }) => [event_type, payload.code]),
			[
				['model.retry', 'model_empty'],
				['model.retry', 'model_empty'],
			],
		)
	})

	void t.test('three empty answers fail the run, and their tokens count', async (t) => {
		const outcome = await inTurn(empty(), empty(), empty({ reasoning: 'Hm.' })).run()
		t.match(outcome, {
			status: 'failed',
			error: { code: 'model_empty', message: /returned reasoning, but no answer, 3 times/ },
			usage: { input_tokens: 30, output_tokens: 15 },
		})
		t.match(await inTurn(...[1, 2, 3].map(() => cut(''))).run(), { error: { message: /raise max_tokens/ } })
	})

	void t.test('an answer emptied by a content filter fails the run, a shortened one does not', async (t) => {
		const filtered = empty({ finish_reason: 'content_filter' })
		t.match(await inTurn(filtered).run(), { status: 'failed', error: { code: 'model_filtered' } })
		t.match(await inTurn({ ...filtered, content: 'Half.' }).run(), {
			status: 'completed',
			answer: { content: 'Half.', finish_reason: 'content_filter' },
		})
	})

	void t.test('a truncated answer is continued, and its parts become one answer', async (t) => {
		const world = inTurn(cut('Once upon '), { ...text('a time.'), reasoning: 'On.' })
		t.match(await world.run(), {
			status: 'completed',
			answer: { content: 'Once upon a time.', finish_reason: 'stop', reasoning: 'On.' },
			usage: { input_tokens: 20, output_tokens: 10 },
		})
		t.match(world.requests[1]?.turns.slice(-2), [
			{ role: 'assistant', content: 'Once upon ' },
			{ role: 'user', content: /Continue exactly where it ended/ },
		])
		t.match(world.events, [{ event_type: 'model.continued', payload: { characters: 10 } }])

		const endless = inTurn(...Array.from({ length: 5 }, () => cut('x')))
		t.match(await endless.run(), { answer: { content: 'xxxx', finish_reason: 'length' } })
	})

	void t.test('an answer truncated by a configured max_tokens is not continued', async (t) => {
		const models = [
			{ provider: 'scripted', kind: 'offline' as const, model: 'm', timeout_ms: 1, params: { max_tokens: 5 } },
		]
		t.match(await inTurn(cut('Once')).run({ models }), { answer: { content: 'Once', finish_reason: 'length' } })
	})

	void t.test('a failed continuation leaves the truncated answer', async (t) => {
		const world = makeWorld([])
		world.ask = () =>
			Promise.resolve(
				world.requests.length === 1
					? { status: 'answered', answer: cut('Half of it') }
					: { status: 'failed', failure: { code: 'model_timeout', message: 'late', retryable: true } },
			)
		t.match(await world.run(), { status: 'completed', answer: { content: 'Half of it', finish_reason: 'length' } })
	})
})

void t.test('a failed model call fails the run with its code', async (t) => {
	const world = makeWorld([])
	world.ask = () =>
		Promise.resolve({
			status: 'failed',
			failure: { code: 'model_rejected', message: 'openai (m): 401 no', retryable: false },
		})
	t.match(await world.run(), { status: 'failed', error: { code: 'model_rejected', message: 'openai (m): 401 no' } })
})

void t.test('an error of the main thread fails the run with its code', async (t) => {
	const world = makeWorld([call('a')])
	world.onModel = () => Promise.reject(new Fault('storage_full', 'no room'))
	t.match(await world.run(), { status: 'failed', error: { code: 'storage_full', message: 'no room' } })
	t.strictSame(world.calls, ['model'])
})

void t.test('stopping', async (t) => {
	void t.test('before the start prevents all model calls', async (t) => {
		const world = makeWorld([text('Never said.')])
		world.controller.abort('enough')
		t.strictSame(await world.run(), { status: 'stopped' })
		t.strictSame(world.requests, [])
	})

	void t.test('during a model call discards its answer, but counts its usage', async (t) => {
		const world = makeWorld([])
		world.ask = (_request, { signal }) => {
			world.controller.abort('enough')
			t.ok(signal.aborted)
			return Promise.resolve({ status: 'answered', answer: text('Too late.') })
		}
		const { status, spent, ...rest } = (await world.run()) as Extract<RunOutcome, { status: 'stopped' }>
		t.equal(status, 'stopped')
		t.match(spent, [{ usage: { input_tokens: 10, output_tokens: 5 } }], 'its usage counts')
		t.strictSame(rest, {})
	})

	void t.test('during a tool call prevents further calls', async (t) => {
		const world = makeWorld([call('a', 'b'), text('Never said.')])
		world.onTool = () => {
			world.controller.abort('enough')
			return Promise.reject(new Fault('stopped', 'enough'))
		}
		t.strictSame(await world.run(), { status: 'stopped' })
		t.strictSame(world.calls, ['model', 'tool a'])
	})
})

interface World {
	/** The steps that the main thread has journalled; a run starts with them. */
	journal: Step[]
	calls: string[]
	requests: ModelRequest[]
	events: NewEvent[]
	controller: AbortController
	onSlot: () => Promise<null>
	onModel: () => Promise<null>
	onTool: (id: string) => Promise<ToolReply>
	ask: AskModel
	/** Settles at the next call of this method. */
	called(method: string): Promise<void>
	run(change?: Partial<RunOrder>): Promise<RunOutcome>
}

/** A main thread that journals all calls, and a model whose n-th answer is the script's n-th. */
function makeWorld(script: ModelAnswer[]): World {
	const watchers = new Map<string, () => void>()
	const answered: ModelReply[] = script.map((answer) => ({ status: 'answered', answer }))
	const world: World = {
		journal: [],
		calls: [],
		requests: [],
		events: [],
		controller: new AbortController(),
		onModel: () => Promise.resolve(null),
		onSlot: () => Promise.resolve(null),
		onTool: (id) => Promise.resolve({ status: 'done', ok: true, content: `result of ${id}` }),
		ask: (_request, { step }) => {
			const reply = answered[step - 1]
			if (!reply) throw new Error(`the script has no answer ${step}`)
			return Promise.resolve(reply)
		},
		called: (method) => new Promise((resolve) => watchers.set(method, resolve)),
		run: (change = {}) =>
			runLoop(orderWith(world.journal, change), io, async (request, modelIo) => {
				world.requests.push(structuredClone(request))
				const reply = await world.ask(request, modelIo)
				if (reply.status === 'answered') modelIo.spent(reply.answer)
				return reply
			}),
	}
	const io: Link = {
		signal: world.controller.signal,
		emit: (event) => world.events.push(event),
		stream: () => {},
		sent: () => {},
		call: (async (method: string, params: unknown) => {
			watchers.get(method)?.()
			if (method === 'model') {
				const { answer } = params as { answer: ModelAnswer }
				world.calls.push('model')
				await world.onModel()
				world.journal.push({ kind: 'model', answer })
				return null
			}
			if (method === 'slot') return world.onSlot()
			if (method === 'leave_slot') return void world.calls.push('leave_slot')
			if (method === 'remark') {
				world.calls.push('remark')
				world.journal.push({ kind: 'remark', ...(params as Remark) })
				return null
			}
			const { id } = (params as { call: { id: string } }).call
			world.calls.push(`tool ${id}`)
			const reply = await world.onTool(id)
			if (reply.status === 'done')
				world.journal.push({ kind: 'tool', call_id: id, ok: reply.ok, content: reply.content })
			return reply
		}) as Link['call'],
	}
	return world
}

function orderWith(journal: Step[], change: Partial<RunOrder>): RunOrder {
	return {
		run_id: 'r1',
		agent_id: 'a1',
		models: [{ provider: 'scripted', kind: 'offline', model: 'm', timeout_ms: 1_000 }],
		system: null,
		history: [],
		prompt: 'Go.',
		tools: [],
		journal: structuredClone(journal),
		limits: { steps: 50, tokens: 100_000, wall_time_s: 60 },
		remaining_ms: 60_000,
		...change,
	}
}

function answer(content: string, tool_calls: ModelAnswer['tool_calls']): ModelAnswer {
	const usage = { input_tokens: 10, output_tokens: 5 }
	return { content, tool_calls, usage, provider: 'scripted', model: 'm', finish_reason: 'stop' }
}

function text(content: string): ModelAnswer {
	return answer(content, [])
}

function call(...ids: string[]): ModelAnswer {
	return answer(
		'',
		ids.map((id) => ({ id, name: 'tool', arguments: '{}' })),
	)
}

function message(outcome: RunOutcome): string {
	return outcome.status === 'failed' ? outcome.error.message : ''
}
