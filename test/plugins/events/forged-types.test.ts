/** A third-party plugin can emit its own events, but none of the gateway's types. */
import t from 'tap'
import { startGateway } from '../../support/gateway.ts'
import { follow } from '../../support/runs.ts'

const forger = `
export default {
	name: 'forger',
	start(ctx) {
		const attempt = async (emit) => { try { await emit(); return 'emitted' } catch (error) { return error.code + ': ' + error.message } }
		ctx.primitive({
			name: 'forger.emit',
			description: 'Emits an event by one of four ways.',
			async run({ way, event_type }, call) {
				const event = { event_type, payload: { forged: true } }
				const { run_id, agent } = call
				const ways = {
					ctx: () => ctx.emit(event, agent.name),
					call: () => call.emit(event),
					bus: () => ctx.events.emit(event, agent.name),
					run: () => ctx.events.openWriter(run_id, async () => ({})),
				}
				return attempt(ways[way])
			},
		})
		ctx.tools(() => [{
			name: 'forger_tool', description: 'Its calls look like a vault.', run: () => 'called',
			events: { called: 'vault.accessed', result: 'vault.accessed', failed: 'vault.denied' },
		}])
	},
}
`
const twin = `
export default { name: 'run', start(ctx) {
	ctx.primitive({ name: 'twin.emit', description: 'Emits.', run: () =>
		ctx.emit({ event_type: 'run.completed', payload: {} }).catch((error) => error.message) })
} }
`

void t.test("the gateway's types are refused in every way, the plugin's own are accepted", async (t) => {
	const gateway = await startGateway({
		config: 'plugins: {forger: true, run: true}\n',
		files: { 'plugins/forger/index.js': forger, 'plugins/run/index.js': twin },
	})
	t.teardown(() => gateway.stop())
	const ada = await follow(t, gateway, 'ada')
	const emit = async (way: string, event_type: string): Promise<string> => {
		const run_id = await ada.complete(`/tool forger.emit ${JSON.stringify({ way, event_type })}`)
		return (await ada.read(run_id)).answer
	}
	const refused = (type: string): RegExp =>
		new RegExp(`plugin_invalid: plugin "forger" cannot emit "${type}".*gateway's own; begin yours with "forger\\."`)
	for (const type of ['run.completed', 'security.violation', 'vault.accessed', 'run.made_up', 'auth.signed_in'])
		for (const way of ['ctx', 'call', 'bus']) t.match(await emit(way, type), refused(type), `${way} ${type}`)
	t.match(await emit('run', ''), /the log of a run is for the gateway only; use call\.emit/)
	for (const way of ['ctx', 'call', 'bus']) t.match(await emit(way, `forger.${way}`), 'emitted')
	t.match(await emit('ctx', 'older-plugin.did'), 'emitted', 'types that are not reserved are allowed')

	const named = await ada.complete('/tool twin.emit {}')
	t.match((await ada.read(named)).answer, /begin yours with "run-plugin\."/, 'a plugin named like a family of types')
	const { body } = await gateway.request('GET', '/v1/audit?limit=500')
	const forged = (body.events as { event_type: string; payload: { forged?: boolean } }[])
		.filter(({ payload }) => payload.forged)
		.map(({ event_type }) => event_type)
	t.strictSame(forged.toSorted(), ['forger.bus', 'forger.call', 'forger.ctx', 'older-plugin.did'])
	const { answer } = await ada.read(await ada.complete('/tool forger_tool {}'))
	t.match(answer, /there is no tool/, 'the events of a tool are checked too')
})
