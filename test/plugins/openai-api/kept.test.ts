/** Which data of requests is stored, and for how long. */
import t from 'tap'
import type { Test } from 'tap'
import type { Context } from '../../../core/plugin.ts'
import { sweep } from '../../../plugins/openai-api/stored.ts'
import type { RunSettings } from '../../../plugins/runs/contract.ts'
import { tidy } from '../../../plugins/runs/maintenance.ts'
import { startGateway } from '../../support/gateway.ts'
import type { TestGateway } from '../../support/gateway.ts'
import { startModelServer } from '../../support/model-server.ts'
import { contextProbe } from '../../support/context-probe.ts'
import { runSettings } from '../../support/run-settings.ts'

const DAY_MS = 24 * 3600 * 1000

/** A gateway with one agent, and the context of a plugin in it. */
async function start(
	t: Test,
	providers = '',
): Promise<{ gateway: TestGateway; ctx: Context<RunSettings>; uid: string }> {
	const { files, context } = contextProbe<RunSettings>()
	const gateway = await startGateway({ config: `plugins: {openai-api: true, probe: true}\n${providers}`, files })
	t.teardown(() => gateway.stop())
	const ctx = context()
	await gateway.request('POST', '/v1/agents', { body: { name: 'ada' } })
	return { gateway, ctx, uid: (await ctx.use('agents').get('ada')).uid }
}

/** Removes the stored end of a response, as if a crash had come before it was written. */
async function removeEnd({ store }: Context<RunSettings>, uid: string, id: string): Promise<void> {
	const key = [`agent:${uid}`, 'openai-response', id.slice(-32)] as const
	const { end: _, ...open } = (await store.get<{ end: unknown }>(key))?.value ?? { end: null }
	await store.put(key, open)
}

void t.test('an answer that was cut off stays incomplete even if its end was not written', async (t) => {
	const model = await startModelServer()
	t.teardown(() => model.stop())
	model.on('too long', { text: 'And so', finishReason: 'length' })
	const provider = `{kind: openai, base_url: '${model.url}', api_key: sk-test, model: m}`
	const { gateway, ctx, uid } = await start(t, `providers: {mock: ${provider}}\n`)
	const body = { model: 'ada', input: 'too long' }
	const { id } = (await gateway.request('POST', '/v1/responses', { body })).body
	const read = async () => (await gateway.request('GET', `/v1/responses/${id}`)).body
	const complete = await read()
	t.match(complete, { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } })
	await removeEnd(ctx, uid, id as string)
	const { status, incomplete_details, output } = complete
	t.match(await read(), { status, incomplete_details, output })
})

void t.test('the data given to a run is deleted at its end, the rest with the run', async (t) => {
	const { gateway, ctx, uid } = await start(t)
	const kept = async (kind: string): Promise<number> =>
		(await Array.fromAsync(ctx.store.list([`agent:${uid}`, kind]))).length
	const ask = async (input: string): Promise<{ id: string; output: { type: string }[] }> => {
		const tools = [{ type: 'function', name: 'clock' }]
		const body = { model: 'ada', input, tools }
		return (await gateway.request('POST', '/v1/responses', { body })).body
	}

	const answered = await ask('hello')
	t.equal(answered.output[0]?.type, 'message')
	t.strictSame([await kept('given'), await kept('openai-response')], [0, 1])
	const called = await ask('/tool clock {}')
	t.equal(called.output[0]?.type, 'function_call')
	t.strictSame([await kept('given'), await kept('openai-response')], [1, 2], 'still needed to continue after the call')

	for (const { id } of [answered, called]) {
		const read = async () => (await gateway.request('GET', `/v1/responses/${id}`)).body
		const { output, usage } = await read()
		await removeEnd(ctx, uid, id)
		t.match(await read(), { status: 'completed', output, usage })
	}

	// By the time in the ids, which can be ahead of the clock if other tests have created many.
	const made = Number.parseInt(called.id.slice(-32, -20), 16)
	await tidy({ ...ctx, config: runSettings }, made + 29 * DAY_MS)
	await sweep(ctx)
	t.strictSame([await kept('given'), await kept('openai-response')], [1, 2])
	await tidy({ ...ctx, config: runSettings }, made + 31 * DAY_MS)
	await sweep(ctx)
	t.strictSame([await kept('given'), await kept('openai-response')], [0, 0])
	t.equal((await gateway.request('GET', `/v1/responses/${answered.id}`)).status, 404)
})
