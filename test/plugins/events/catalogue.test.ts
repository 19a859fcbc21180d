import t from 'tap'
import type { EventEnvelope } from '../../../core/store/ports.ts'
import { catalogue } from '../../../plugins/events/catalogue.ts'
import { differences } from '../../support/documented.ts'
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
	model.retry model.fallback
	skill.installed skill.approved skill.removed skill.failed skill.logged
	primitive.failed
	memory.forgotten memory.compaction_started memory.compacted memory.compaction_undone
	vault.secret_created vault.secret_updated vault.secret_deleted vault.granted vault.revoked vault.key_rotated
	heartbeat.skipped heartbeat.deleted
	subagent.failed
	channel.created channel.updated channel.deleted channel.connected channel.disconnected channel.paired channel.unpaired
	channel.error
	webhook.registered webhook.rotated webhook.deleted webhook.accepted webhook.rejected
	mcp.added mcp.removed mcp.accepted mcp.connected mcp.disconnected mcp.called mcp.result mcp.failed
	agent.created agent.updated agent.deleted agent.reset
	token.created token.revoked
	plugin.started plugin.stopped plugin.reloaded plugin.failed
	config.reloaded config.rejected
	backup.created backup.failed backup.removed
	gateway.started gateway.stopping`

void t.test('the catalogue has every type that is specified or decided, and no other', async (t) => {
	const wanted = `${specified} ${decided}`.trim().split(/\s+/)
	t.strictSame(Object.keys(catalogue).toSorted(), wanted.toSorted())
})

void t.test('each type is told in one sentence', async (t) => {
	const sentences = Object.entries(catalogue).map(([type, { tells }]) => {
		t.match(tells, /^[A-Z][^\n]{10,120}\.$/, type)
		return tells
	})
	t.equal(new Set(sentences).size, sentences.length)
})

void t.test('each field of a payload is told in one sentence', async (t) => {
	for (const [type, { payload }] of Object.entries(catalogue))
		for (const [field, tells] of Object.entries(payload)) {
			t.match(field, /^[a-z_]+\??$/, `${type} ${field}`)
			t.match(tells, /^[A-Z`][^\n|]{3,170}\.$/, `${type} ${field}`)
		}
})

void t.test('what differs from the catalogue is found', async (t) => {
	t.strictSame(differences({ event_type: 'run.stopped', payload: {} }), [])
	t.strictSame(differences({ event_type: 'clock.ticked', payload: { of: 'a plugin' } }), [])
	t.match(differences({ event_type: 'run.vanished', payload: {} }), [/run\.vanished is not in the catalogue/])
	t.match(differences({ event_type: 'run.queued', payload: { conversation: 'c', place: 2 } }), [/the field "place"/])
	t.match(differences({ event_type: 'run.queued', payload: {} }), [/has no "conversation"/])
})

void t.test('what a gateway tells of its start is as the catalogue says', async (t) => {
	const gateway = await startGateway()
	t.teardown(() => gateway.stop())
	const { body } = await gateway.request('GET', '/v1/audit?limit=500')
	t.ok(body.events.some(({ event_type }: EventEnvelope) => event_type === 'gateway.started'))
	for (const event of body.events) t.strictSame(differences(event), [])
})
