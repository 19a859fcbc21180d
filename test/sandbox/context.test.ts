/** Fits a request into the window, and retries with a shorter one if the model still refuses it. */
import t from 'tap'
import type { Attachment, ChatMessage, RunOrder } from '../../core/protocol.ts'
import { askFitted } from '../../sandbox/context/ask-fitted.ts'
import { corrected, longestAnswer } from '../../sandbox/context/budget.ts'
import { tokensIn } from '../../sandbox/context/estimate.ts'
import { NO_MARKS } from '../../sandbox/context/earlier.ts'
import { fit as fitLazily } from '../../sandbox/context/fit.ts'
import type { FitInput } from '../../sandbox/context/measure.ts'
import { answerBound } from '../../sandbox/models/answer-bound.ts'
import { failed } from '../../sandbox/models/provider.ts'
import type { ModelReply, ModelRequest, Turn } from '../../sandbox/models/provider.ts'
import { statedLimit } from '../../sandbox/models/too-long.ts'
import type { ModelOrder } from '../../sandbox/order.ts'

const idOf = (at: number): string => `t${String(at).padStart(5, '0')}`

function turnsOf(from: number, to: number, size = 1_000): ChatMessage[] {
	return Array.from({ length: to - from }, (_, at) => from + at).flatMap((at): ChatMessage[] => [
		{ role: 'user', content: `prompt ${at}`, run_id: idOf(at) },
		{ role: 'assistant', content: '', tool_calls: [{ id: `c${at}`, name: 'look', arguments: '{}' }] },
		{
			role: 'tool',
			call_id: `c${at}`,
			name: 'look',
			ok: true,
			content: `${at} ${'x '.repeat(size / 2)}`,
			result_id: `${idOf(at)}:c${at}`,
		},
		{ role: 'assistant', content: `answer ${at}`, tool_calls: [] },
	])
}

function fit(given: FitInput) {
	const fitted = fitLazily(given)
	return { ...fitted, request: fitted.request(), items: fitted.items() }
}

function input(history: ChatMessage[], change: Partial<FitInput> = {}): FitInput {
	const prompt: Turn = { role: 'user', content: 'and now?' }
	return {
		system: 'You are Ada.',
		tools: [],
		turns: [...(history as Turn[]), prompt],
		history,
		run_id: 'z',
		marks: NO_MARKS,
		budget: 6_000,
		fill: 0.8,
		factor: 1,
		...change,
	}
}

void t.test('recent turns are whole, older ones stubs, the oldest are listed, all within the budget', (t) => {
	const { request, items, tokens, fits, marks } = fit(input(turnsOf(0, 100)))
	t.ok(fits && tokens <= 6_000)
	t.strictSame(
		items.map(({ kind, shown = '' }) => kind + shown).filter((one, at, all) => one !== all[at - 1]),
		['instructions', 'tools', 'earlier', 'turnstubs', 'turnwhole', 'prompt'],
	)
	t.match(request.turns[0]?.content, /conversation_search/)
	t.match(request.turns[0]?.content, /- t\d+: prompt \d+/)
	const stub = request.turns.find(({ role, content }) => role === 'tool' && content.includes('omitted'))
	t.match(
		stub?.content,
		/^\[result of 10\d\d characters, omitted here; it begins: \d+ x x.*conversation_read {"result_id":"t\d+:c\d+"}\]$/,
	)
	t.equal(request.turns.at(-1)?.content, 'and now?')
	t.equal(
		request.turns
			.filter(({ role }) => role === 'assistant')
			.flatMap((one) => (one.role === 'assistant' ? one.tool_calls : [])).length,
		request.turns.filter(({ role }) => role === 'tool').length,
		'each call has its result',
	)
	t.ok((marks.from ?? '') < (marks.whole ?? ''))
	t.end()
})

void t.test('in a shrinking window, descriptions replace the oldest images first, all within the budget', (t) => {
	const image = (at: number): Attachment => ({
		type: 'image',
		blob: `sha256:${String(at).padStart(64, '0')}`,
		media_type: 'image/png',
		size: 12_000,
		name: `photo ${at}.png`,
	})
	const history = Array.from({ length: 12 }, (_, at): ChatMessage[] => [
		{ role: 'user', content: `Look at ${at}.`, attachments: [image(at)], run_id: idOf(at) },
		{ role: 'assistant', content: `Seen ${at}.`, tool_calls: [] },
	]).flat()
	const prompt: Turn = { role: 'user', content: 'And this?', attachments: [image(99)] }
	const shownAt = (budget: number): { images: string[]; text: string } => {
		const { request, tokens, fits } = fit(input(history, { turns: [...(history as Turn[]), prompt], budget }))
		t.ok(fits && tokens <= budget, `${tokens} of ${budget}`)
		const images = request.turns.flatMap((turn) => (turn.role === 'assistant' ? [] : (turn.attachments ?? [])))
		return { images: images.map(({ name = '' }) => name), text: JSON.stringify(request.turns) }
	}
	const all = shownAt(40_000).images
	t.equal(all.length, 13)
	let before = all
	for (const budget of [30_000, 20_000, 10_000, 6_000, 3_000, 1_000]) {
		const { images, text } = shownAt(budget)
		t.strictSame(images, before.slice(before.length - images.length), 'the newest images remain')
		for (const name of text.matchAll(/\[image \\"(photo \d+\.png)\\"/g)) t.notOk(images.includes(name[1] ?? ''))
		before = images
	}
	t.match(shownAt(3_000), { images: ['photo 99.png'], text: /\[image \\"photo 11\.png\\", image\/png, 12 KB\]/ })
	t.match(shownAt(1_000), { images: [], text: /And this\?[^]*\[image \\"photo 99\.png/ })
	t.end()
})

void t.test('a cut lasts for many turns, and the turns before it need not be loaded', (t) => {
	let marks = NO_MARKS
	let cuts = 0
	for (let turn = 10; turn < 210; turn++) {
		const first = marks.from === null ? 0 : Number(marks.from.slice(1))
		const fitted = fit(input(turnsOf(first, turn), { marks }))
		const whole = fit(input(turnsOf(0, turn), { marks }))
		t.strictSame(fitted.request, whole.request, 'the same with and without the turns before the cut')
		if (fitted.marks !== marks) cuts++
		marks = fitted.marks
		t.ok(fitted.tokens <= 6_000)
	}
	t.ok(cuts >= 10 && cuts <= 45, `${cuts} cuts in 200 turns`)
	t.end()
})

void t.test('several medium results of one run, and a long prompt, fit together', (t) => {
	const results = Array.from({ length: 8 }, (_, at): Turn[] => [
		{ role: 'assistant', content: '', tool_calls: [{ id: `r${at}`, name: 'look', arguments: '{}' }] },
		{ role: 'tool', call_id: `r${at}`, name: 'look', ok: true, content: 'medium '.repeat(1_500) },
	])
	const prompt: Turn = { role: 'user', content: `begin ${'word '.repeat(20_000)} end` }
	const history = turnsOf(0, 5)
	const { request, tokens, fits } = fit(input(history, { turns: [...(history as Turn[]), prompt, ...results.flat()] }))
	t.ok(fits && tokens <= 6_000, String(tokens))
	t.equal(request.system, 'You are Ada.', 'the instructions stay')
	t.ok(request.turns.some(({ content }) => content.startsWith('begin ') && content.endsWith(' end')))
	t.equal(request.turns.filter(({ role }) => role === 'tool').length, 8)

	const many = Array.from({ length: 200 }, () => results.flat()).flat()
	const squeezed = fit(input([], { turns: [prompt, ...many] }))
	t.ok(squeezed.fits, String(squeezed.tokens))
	t.notOk(fit(input([], { system: 'x '.repeat(50_000) })).fits, 'instructions are never cut')
	t.end()
})

void t.test('an estimate counts scripts and code as models do, and is corrected by reported usage', (t) => {
	t.ok(tokensIn('The quick brown fox jumps over the lazy dog.') >= 10)
	t.ok(tokensIn('これは日本語の文です。') >= 11)
	t.ok(tokensIn('{"a":[1,2,3]}') >= 9)
	t.equal(tokensIn(''), 0)
	t.ok(corrected(1, 1_000, 1_500) > 1.5, 'at once if it was too low')
	const lower = corrected(1, 1_000, 700)
	t.ok(lower < 1 && lower > 0.9, 'slowly if it was too high')
	t.equal(corrected(1, 0, 700), 1)
	t.end()
})

/** The arguments of `askFitted`, and the payloads of its `context.shrunk` events. */
function askable(context_window: number) {
	const history = turnsOf(0, 60)
	const order = {
		run_id: 'z',
		history,
		models: [{ provider: 'p', kind: 'openai', model: 'm', timeout_ms: 1, context_window }],
		context: { marks: NO_MARKS, tokens: 100_000, limits: {}, factors: {} },
	} as unknown as RunOrder
	const request: ModelRequest = { system: null, tools: [], turns: input(history).turns }
	const shrunk: { provider: string; tokens: number }[] = []
	const io = {
		signal: new AbortController().signal,
		step: 1,
		emit: ({ payload }: { payload: { provider: string; tokens: number } }) => void shrunk.push(payload),
		stream() {},
		blob: () => Promise.resolve(null),
		spent() {},
	} as unknown as Parameters<typeof askFitted>[2]
	return { order, request, io, shrunk }
}

function answeredBy({ provider, model }: ModelOrder): ModelReply {
	const usage = { input_tokens: 10, output_tokens: 1 }
	return {
		status: 'answered',
		answer: { content: 'so', tool_calls: [], usage, provider, model, finish_reason: 'stop' },
	}
}

/** Asks a model that refuses requests of more than `maxTurns` turns; `limits`: the token limits that result. */
function askerOf(context_window: number, message: string) {
	const { order, request, io, shrunk } = askable(context_window)
	const asked: number[] = []
	const ask = async (maxTurns: number) => {
		const [model] = order.models as [ModelOrder]
		return askFitted(order, request, io, async (requestFor) => {
			const { turns } = requestFor(model)
			asked.push(turns.length)
			if (turns.length > maxTurns) return failed('context_too_long', message, { stated: statedLimit(message) })
			return answeredBy(model)
		})
	}
	return { ask, asked, limits: () => shrunk.map(({ tokens }) => tokens) }
}

void t.test('a request that the model refuses as too long is shortened until it is accepted', async (t) => {
	const { ask, asked } = askerOf(60_000, 'The prompt is too long.')
	const reply = await ask(100)
	t.equal(reply.status, 'answered')
	t.ok(asked.length > 1 && asked.length <= 4)
	const before = asked.length
	await ask(100)
	t.equal(asked.length, before + 1, 'later requests are as short')
	const never = await ask(0)
	t.equal(never.status, 'failed')
	t.equal(asked.length, before + 5, 'at most three retries')
})

void t.test('a shortened request leaves room for the answer in the window that the server states', async (t) => {
	const limitsFor = (context_window: number, message: string) => {
		const { ask, limits } = askerOf(context_window, message)
		return ask(100).then(limits)
	}
	const message = "This model's maximum context length is 8192 tokens."
	t.strictSame(await limitsFor(60_000, message), [6_881])
	t.strictSame(await limitsFor(4_096, message), [], 'the operator set a smaller window: the request fits')
	t.strictSame(
		await limitsFor(60_000, 'request (23000 tokens) exceeds the available context size (8192 tokens)'),
		[6_881],
	)
	// A request that is shorter than the stated window by our estimate shrinks as if no window was stated.
	const [first = 0, second = 0] = await limitsFor(60_000, "This model's maximum context length is 50000 tokens.")
	t.ok(first > 0 && first < 30_000, `${first}, ${second}`)
})

void t.test('an answer that the end of the window truncates shortens later requests to its model', async (t) => {
	const { order, request, io, shrunk } = askable(60_000)
	order.models.push({ provider: 'other', kind: 'openai', model: 'm', timeout_ms: 1, context_window: 60_000 })
	const asked: number[] = []
	const reply = await askFitted(order, request, io, async (requestFor) => {
		const { turns } = requestFor(order.models[0] as ModelOrder)
		const isCut = asked.push(turns.length) === 1
		const usage = { input_tokens: 9_000, output_tokens: 5 }
		const [content, finish_reason] = isCut ? ['', 'length' as const] : ['so', 'stop' as const]
		return {
			status: 'answered',
			answer: { content, tool_calls: [], usage, provider: 'p', model: 'm', finish_reason },
		}
	})
	t.match(reply, { status: 'answered', answer: { content: 'so', limit: 7_204 } })
	t.match(shrunk, [{ provider: 'p', tokens: 7_204 }])
	t.same(Object.keys(order.context?.limits ?? {}), ['p/m'])
	t.ok((asked[1] ?? 0) < (asked[0] ?? 0), String(asked))
})

void t.test('an answer of a fallback does not count as the answer of the last model', async (t) => {
	const { order, request, io, shrunk } = askable(60_000)
	order.models.push({ provider: 'other', kind: 'openai', model: 'm', timeout_ms: 1 })
	// The last model refuses; for the shorter request, the first one answers.
	let calls = 0
	const reply = await askFitted(order, request, io, async (requestFor) => {
		const [first, last] = order.models as [ModelOrder, ModelOrder]
		requestFor(first)
		if (++calls > 1) return answeredBy(first)
		requestFor(last)
		return failed('context_too_long', 'The prompt is too long.')
	})
	t.match(shrunk, [{ provider: 'other' }])
	t.match(reply, { status: 'answered', answer: { provider: 'p', limit: undefined } })
})

void t.test('the limit of an answer is read from each setting that has one', (t) => {
	const order: ModelOrder = { provider: 'p', kind: 'openai', model: 'm', timeout_ms: 1, context_window: 32_768 }
	t.equal(answerBound(order), undefined)
	t.equal(longestAnswer(order), 4_096)
	for (const [settings, bound] of [
		[{ params: { max_tokens: 700 } }, 700],
		[{ extra_body: { max_tokens: 9_000 } }, 9_000],
		[{ extra_body: { max_completion_tokens: 9_000 }, params: { max_tokens: 700 } }, 9_000],
		[{ extra_body: { max_output_tokens: 9_000 } }, 9_000],
		[{ extra_body: { generationConfig: { maxOutputTokens: 9_000 } } }, 9_000],
		[{ extra_body: { options: { num_predict: 9_000 } } }, 9_000],
		[{ extra_body: { max_tokens: 9_000 }, sampling: { max_tokens: 50 } }, 9_000],
	] as const) {
		t.equal(answerBound({ ...order, ...settings }), bound, JSON.stringify(settings))
		t.equal(longestAnswer({ ...order, ...settings }), bound)
	}
	for (const num_predict of [-1, -2])
		t.equal(answerBound({ ...order, extra_body: { options: { num_predict } } }), undefined)
	t.equal(longestAnswer({ ...order, extra_body: { max_tokens: 30_000 } }), 16_384, 'at most half of the window')
	t.end()
})

void t.test('the window and the length of a request are read from many error messages', (t) => {
	const request = 9_000
	for (const [message, stated] of [
		[
			"This model's maximum context length is 8192 tokens. However, your messages resulted in 9,000 tokens.",
			{ request },
		],
		[
			"This model's maximum context length is 8192 tokens. However, you requested 9500 tokens (9000 in the messages, 500 in the completion).",
			{ request },
		],
		[
			"'max_tokens' is too large: 500. This model's maximum context length is 8192 tokens and your request has 9000 input tokens (500 > 8192 - 9000).",
			{ request },
		],
		[
			"This endpoint's maximum context length is 8192 tokens. However, you requested about 9500 tokens (9000 of text input, 500 in the output).",
			{},
		],
		[
			'Prompt contains 9000 tokens and 0 draft tokens, too large for model with 8192 maximum context length',
			{ request },
		],
		["The input (9000 tokens) is longer than the model's context length (8192 tokens).", { request }],
		['However, the model is loaded with context length of only 8192 tokens, which is not enough.', {}],
		["This model's maximum prompt length is 8192 but the request contains 9000 tokens.", {}],
		['prompt token count of 9000 exceeds the limit of 8192', {}],
		['Request too large for model m on tokens per minute (TPM): Limit 8192, Requested 9000', {}],
		['input length and `max_tokens` exceed context limit: 7800 + 1000 > 8192, decrease input length', {}],
	] as const)
		t.strictSame(statedLimit(message), { window: 8_192, ...stated }, message)
	for (const message of ['the prompt is too long', 'the context length is exceeded', 'at most 8192 messages'])
		t.equal(statedLimit(message), undefined, message)
	t.end()
})

void t.test('a request that cannot be shortened fails with the message of the model', async (t) => {
	for (const factor of [0.5, 1, 3]) {
		const order = {
			run_id: 'z',
			history: [],
			models: [{ provider: 'p', kind: 'openai', model: 'm', timeout_ms: 1, context_window: 60_000 }],
			context: { marks: NO_MARKS, tokens: 100_000, limits: {}, factors: { 'p/m': factor } },
		} as unknown as RunOrder
		const turns = [{ role: 'user' as const, content: 'Hello.' }]
		const request: ModelRequest = { system: 'word '.repeat(20_000 / factor), tools: [], turns }
		const io = { signal: new AbortController().signal, emit() {} } as unknown as Parameters<typeof askFitted>[2]
		const message = "This model's maximum context length is 8192 tokens"
		let asked = 0
		const reply = await askFitted(order, request, io, (requestFor) => {
			requestFor(order.models[0] as RunOrder['models'][0])
			asked++
			return Promise.resolve({ status: 'failed', failure: { code: 'context_too_long', message, retryable: false } })
		})
		const whole =
			/context length is 8192 tokens; of the request, about instructions \d+, .* cannot be omitted: .* fewer tools$/
		t.match(reply, { status: 'failed', failure: { code: 'context_too_long', message: whole } }, `factor ${factor}`)
		t.equal(asked, 1)
	}
})
