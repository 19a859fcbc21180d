import t from 'tap'
import type { EventEnvelope } from '../../../core/store/ports.ts'
import { declaredBy } from '../../../core/host/declared.ts'
import { builtInPlugins } from '../../../docs/make/plugins.ts'
import { builtInTypes, differences } from '../../support/documented.ts'
import { startGateway } from '../../support/gateway.ts'

/** As the specification lists them. */
const specified = `
	run.started run.completed run.failed
	message.user message.assistant message.system
	model.request model.response model.stream
	skill.invoked skill.completed primitive.called primitive.result
	memory.stored memory.recalled
	vault.accessed vault.denied
	heartbeat.fired heartbeat.created
	subagent.spawned subagent.completed
	security.violation security.redacted
	channel.message_received channel.message_sent`

/** As the decisions beyond it list them. */
const decided = `
	run.queued run.paused run.resumed run.stopped
	question.asked question.answered
	message.reasoning message.remark message.transcribed message.said message.undelivered
	profile.changed
	model.queued model.retry model.continued model.fallback model.tools_refused context.shrunk context.summarized context.summary_failed
	conversation.deleted
	skill.installed skill.approved skill.removed skill.failed skill.logged
	primitive.failed
	memory.forgotten memory.compaction_started memory.compacted memory.compaction_undone
	vault.secret_created vault.secret_updated vault.secret_deleted vault.granted vault.revoked vault.key_rotated
	heartbeat.skipped heartbeat.changed heartbeat.deleted
	subagent.failed
	channel.created channel.updated channel.deleted channel.connected channel.disconnected channel.paired channel.unpaired
	channel.error
	webhook.registered webhook.rotated webhook.deleted webhook.accepted webhook.rejected
	mcp.added mcp.removed mcp.accepted mcp.connected mcp.disconnected mcp.login_required mcp.logged_in
	mcp.logged_out mcp.called mcp.sampling mcp.result mcp.failed
	agent.created agent.updated agent.deleted agent.reset
	token.created token.revoked
	plugin.started plugin.stopped plugin.reloaded plugin.failed
	config.reloaded config.rejected
	backup.created backup.failed backup.removed
	gateway.started gateway.error gateway.stopping
	auth.signed_in auth.signed_out`

void t.test('the plugins declare every type that is specified or decided, and no other', async (t) => {
	const wanted = `${specified} ${decided}`.trim().split(/\s+/)
	t.strictSame([...builtInTypes.keys()].toSorted(), wanted.toSorted())
})

void t.test("what a plugin's events.ts declares is in its definition", async (t) => {
	const { events } = declaredBy(await builtInPlugins())
	t.strictSame([...events.keys()].toSorted(), [...builtInTypes.keys()].toSorted())
})

void t.test('each type is told in one sentence', async (t) => {
	const sentences = [...builtInTypes].map(([type, { description }]) => {
		t.match(description, /^[A-Z][^\n]{10,120}\.$/, type)
		return description
	})
	t.equal(new Set(sentences).size, sentences.length)
})

void t.test('each field of a payload is told in one sentence', async (t) => {
	for (const [type, { payload }] of builtInTypes)
		for (const [field, tells] of Object.entries(payload)) {
			t.match(field, /^[a-z_]+\??$/, `${type} ${field}`)
			t.match(tells, /^[A-Z`][^\n|]{3,170}\.$/, `${type} ${field}`)
		}
})

void t.test('what differs from the declaration is found', async (t) => {
	t.strictSame(differences({ event_type: 'run.stopped', payload: {} }), [])
	t.strictSame(differences({ event_type: 'clock.ticked', payload: { of: 'a plugin' } }), [])
	const clock = new Map([['clock.ticked', { description: 'It ticked.', payload: { at: 'When.' } }]])
	t.match(differences({ event_type: 'clock.ticked', payload: { of: 1 } }, clock), [/the field "of"/, /no "at"/])
	t.match(differences({ event_type: 'run.vanished', payload: {} }), [/run\.vanished is not declared/])
	t.match(differences({ event_type: 'run.queued', payload: { conversation: 'c', place: 2 } }), [/the field "place"/])
	t.match(differences({ event_type: 'run.queued', payload: {} }), [/has no "conversation"/])
})

void t.test('what a gateway tells of its start is as declared', async (t) => {
	const gateway = await startGateway()
	t.teardown(() => gateway.stop())
	const { body } = await gateway.request('GET', '/v1/audit?limit=500')
	t.ok(body.events.some(({ event_type }: EventEnvelope) => event_type === 'gateway.started'))
	for (const event of body.events) t.strictSame(differences(event), [])
})
