/** What `svc status` shows about models: the provider, and whether the last call failed. */
import t from 'tap'
import { addToken } from '../../../support/add.ts'
import { svcFor } from '../../../support/cli.ts'
import { startGateway } from '../../../support/gateway.ts'
import { startModelServer } from '../../../support/model-server.ts'
import { follow } from '../../../support/runs.ts'

void t.test('without a provider, svc status shows that the offline provider answers', async (t) => {
	const gateway = await startGateway()
	t.teardown(() => gateway.stop())
	const { code, stdout } = await svcFor(gateway)(['status'])
	t.equal(code, 0)
	t.match(stdout, /^models: the built-in offline provider answers; "svc init" sets up a real one$/m)
})

void t.test('svc status shows the default provider, and a failed call until the next answer', async (t) => {
	const model = await startModelServer()
	t.teardown(() => model.stop())
	model.on('Hello', { status: 401, message: 'no such key' }, 'Hi.')
	const local = `{kind: openai, base_url: "${model.url}", model: qwen3}`
	const other = `{kind: openai, base_url: "${model.url}", model: other}`
	const gateway = await startGateway({
		config: `providers: {local: ${local}, other: ${other}}\ndefault_provider: local\n`,
	})
	t.teardown(() => gateway.stop())
	const svc = svcFor(gateway)
	t.match((await svc(['status'])).stdout, `\nmodels: local (qwen3 at ${model.url})\n`)

	const ada = await follow(t, gateway, 'ada')
	await ada.ended(await ada.start('Hello'))
	const failed = await svc(['status'])
	t.equal(failed.code, 0, 'the gateway works')
	t.match(failed.stdout, /^models: local \(.*; the last call failed at \d{4}-.*no such key/m)
	t.match((await svc(['status', '--json'])).json(), {
		providers: [{ name: 'local', is_default: true }, { name: 'other' }],
		model_failure: { message: /no such key/ },
	})

	await ada.complete('Hello')
	t.match((await svc(['status'])).stdout, `\nmodels: local (qwen3 at ${model.url})\n`)

	// The next attempt would hide the failure, so the server asks for a wait.
	model.on('Which', { status: 429, retryAfter: 60 })
	const bea = await follow(t, gateway, 'bea', { config: { provider: 'other', fallback: [] } })
	const run = await bea.start('Which')
	await bea.waitFor(run, 'model.retry')
	t.match((await svc(['status'])).stdout, /; the last call to other failed at /)
	await bea.call('stop', {})
	await bea.ended(run)

	model.on('Where', { status: 401, message: 'no such key' }, 'There.')
	const cy = await follow(t, gateway, 'cy', { config: { fallback: ['other'] } })
	await cy.complete('Where')
	const replaced = (await svc(['status', '--json'])).json()
	t.match(replaced, { model_failure: { provider: 'local', message: /no such key/ } }, 'the fallback has answered')

	await cy.complete('Where')
	model.on('Down', { status: 500 })
	const starts = Array.from({ length: 21 }, (_, n) => ada.call('runs', { prompt: 'Down', conversation: `down-${n}` }))
	await Promise.all(starts.map(async (start) => ada.ended((await start).body.run_id)))
	await bea.complete('Where')
	const others = (await svc(['status', '--json'])).json()
	t.match(others, { model_failure: { provider: 'local' } }, 'another provider has answered after many failed runs')

	const reader = await addToken(gateway, ['agents:read'])
	t.match((await svcFor({ ...gateway, token: reader.token })(['status'])).stdout, `\nmodels: local (qwen3`)
})
