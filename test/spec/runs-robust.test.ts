/** A plugin or model that misbehaves fails only its own calls. */
import t from 'tap'
import { startGateway } from '../support/gateway.ts'
import { startModelServer } from '../support/model-server.ts'
import { providersAt } from '../support/providers.ts'
import { follow } from '../support/runs.ts'

void t.test('plugins whose lists of tools hang or are invalid do not delay runs', async (t) => {
	const gateway = await startGateway({
		config: 'plugins:\n  mute: true\n  odd: true\n  good: true\n',
		files: {
			'plugins/mute/index.js':
				"export default { name: 'mute', start: (ctx) => ctx.tools(() => new Promise(() => {})) }",
			'plugins/odd/index.js': "export default { name: 'odd', start: (ctx) => ctx.tools(() => [null, {}]) }",
			'plugins/good/index.js':
				"export default { name: 'good', start: (ctx) => ctx.tools(() => [{ name: 'fine', description: 'Fine.', run: () => 'fine' }]) }",
		},
	})
	t.teardown(() => gateway.stop())
	const ada = await follow(t, gateway, 'ada')
	t.match(await ada.read(await ada.complete('/tool fine {}')), { status: 'completed', answer: /fine answered/ })
})

void t.test('an invalid error, event or result of a tool fails only its call', async (t) => {
	const gateway = await startGateway({
		config: 'plugins:\n  wild: true\n',
		files: {
			'plugins/wild/index.js': `
				const acts = {
					nothing: () => { throw Object.create(null) },
					text: () => { throw 'no' },
					cycle: () => { const a = {}; a.a = a; return a },
					big: () => 1n,
					event: (args, call) => { call.emit(null) },
				}
				export default { name: 'wild', start: (ctx) => {
					for (const [name, run] of Object.entries(acts)) ctx.primitive({ name: 'wild.' + name, description: name, run })
				} }`,
		},
	})
	t.teardown(() => gateway.stop())
	const ada = await follow(t, gateway, 'ada')
	for (const name of ['nothing', 'text', 'cycle', 'big', 'event']) {
		const run_id = await ada.complete(`/tool wild.${name} {}`)
		t.match(await ada.read(run_id), { status: 'completed' }, name)
		t.ok(ada.typesOf(run_id).includes('primitive.failed'), name)
	}
})

void t.test('an answer that is too large to store fails its run at once, without a retry', async (t) => {
	const model = await startModelServer()
	const gateway = await startGateway({
		config: providersAt({ main: model.url }),
	})
	t.teardown(async () => {
		await gateway.stop()
		await model.stop()
	})
	model.on('huge', { text: '\u0001'.repeat(1_000_000), chunkSize: 50_000 })
	const ada = await follow(t, gateway, 'ada')
	const run_id = await ada.start('huge')
	t.match((await ada.ended(run_id)).payload, { code: 'payload_too_large' })
	t.equal(model.requests('huge').length, 1)
})
