/** Cached and reasoning tokens, in the fields that OpenAI's clients read. */
import t from 'tap'
import { startGateway } from '../../support/gateway.ts'
import { startScriptedModels } from '../../support/scripted-model.ts'
import { clientOf, userMessages } from './client.ts'

const models = await startScriptedModels()
t.teardown(() => models.stop())
const details = { prompt_tokens_details: { cached_tokens: 7 }, completion_tokens_details: { reasoning_tokens: 6 } }
const answer = (usage: object): unknown[] => [
	{ choices: [{ index: 0, delta: { content: 'Yes.' }, finish_reason: 'stop' }] },
	{ choices: [], usage: { prompt_tokens: 9, completion_tokens: 8, total_tokens: 17, ...usage } },
]
const counting = models.add(() => ({ sse: answer(details) }))
const silent = models.add(() => ({ sse: answer({}) }))
const gateway = await startGateway({
	config: `plugins: {openai-api: true}
default_provider: counting
providers:
  counting: {kind: openai, base_url: '${counting.url}', api_key: k, model: m}
  silent: {kind: openai, base_url: '${silent.url}', api_key: k, model: m}
`,
})
t.teardown(() => gateway.stop())
for (const provider of ['counting', 'silent'])
	await gateway.request('POST', '/v1/agents', { body: { name: provider, config: { provider } } })
const openai = clientOf(gateway.url)
const messages = userMessages('Is it?')
const total = { prompt_tokens: 9, completion_tokens: 8, total_tokens: 17 }

void t.test('a chat completion has the numbers of the provider', async (t) => {
	const ask = async (model: string) => (await openai.chat.completions.create({ model, messages })).usage
	t.strictSame(await ask('counting'), { ...total, ...details })
	t.strictSame(await ask('silent'), total)
	const body = { model: 'counting', messages, stream: true as const, stream_options: { include_usage: true } }
	const chunks = await Array.fromAsync(await openai.chat.completions.create(body))
	t.strictSame(chunks.at(-1)?.usage, { ...total, ...details })
})

void t.test('a response has the numbers as well, also when it is read later', async (t) => {
	const response = await openai.responses.create({ model: 'counting', input: 'Is it?' })
	t.strictSame(response.usage, {
		input_tokens: 9,
		input_tokens_details: { cached_tokens: 7 },
		output_tokens: 8,
		output_tokens_details: { reasoning_tokens: 6 },
		total_tokens: 17,
	})
	t.strictSame(await openai.responses.retrieve(response.id), response)
	const withoutDetails = await openai.responses.create({ model: 'silent', input: 'Is it?' })
	t.match(withoutDetails.usage, {
		input_tokens_details: { cached_tokens: 0 },
		output_tokens_details: { reasoning_tokens: 0 },
	})
})
