import t from 'tap'
import { catalogue } from '../../../plugins/events/catalogue.ts'

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
	gateway.started gateway.stopping`

void t.test('the catalogue has every type that is specified or decided, and no other', async (t) => {
	const wanted = `${specified} ${decided}`.trim().split(/\s+/)
	t.strictSame(Object.keys(catalogue).toSorted(), wanted.toSorted())
})

void t.test('each type is told in one sentence', async (t) => {
	for (const [type, tells] of Object.entries(catalogue)) t.match(tells, /^[A-Z][^\n]{10,120}\.$/, type)
	t.equal(new Set(Object.values(catalogue)).size, Object.keys(catalogue).length)
})
