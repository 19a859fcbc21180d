/** Files that an agent sends with its answer: their sources, limits and uses. */
import t from 'tap'
import { png } from '../../support/files.ts'
import { startGateway } from '../../support/gateway.ts'
import { startManualModel } from '../../support/manual-model.ts'
import type { ManualCall } from '../../support/manual-model.ts'
import { startScriptedModels } from '../../support/scripted-model.ts'
import { eventually } from '../../support/wait.ts'

const held = await startManualModel()
const models = await startScriptedModels()
/** Sends a file in its first answer; all others are empty. */
const silent = models.add((_, n) => {
	const call = { name: 'conversation_send_file', arguments: JSON.stringify({ text: 'a,b', name: 'only.csv' }) }
	const message = n === 0 ? { tool_calls: [{ id: 'call-1', type: 'function', function: call }] } : { content: '' }
	const choices = [{ index: 0, message: { role: 'assistant', ...message }, finish_reason: 'stop' }]
	return { json: { choices, usage: { prompt_tokens: 1, completion_tokens: 1 } } }
})
const gateway = await startGateway({
	config: `plugins:
  attachments: { max_mib: 1, max_mib_per_message: 2 }
default_provider: offline
providers:
  offline: { kind: offline }
  held: { kind: openai, base_url: '${held.url}', api_key: test, model: held }
  silent: { kind: openai, base_url: '${silent.url}', model: m, compat: { streaming: false } }
`,
})
t.teardown(async () => {
	await gateway.stop()
	await Promise.all([held.stop(), models.stop()])
})
const { request } = gateway

interface Run {
	run_id: string
	status: string
	answer: string | null
	files?: { type: string; name: string; blob: string; media_type: string; size: number }[]
}

let agents = 0

async function newAgent(): Promise<string> {
	const name = `sender-${++agents}`
	await request('POST', '/v1/agents', { body: { name } })
	return name
}

const sendFile = (args: object): string => `/tool conversation.send_file ${JSON.stringify(args)}`

/** Starts a run, and waits until it has completed. */
async function complete(agent: string, prompt: string, fields: object = {}): Promise<Run> {
	const { status, body } = await request('POST', `/v1/agents/${agent}/runs`, { body: { prompt, ...fields } })
	if (status !== 200) throw new Error(JSON.stringify(body))
	return eventually(
		async () => (await request('GET', `/v1/runs/${body.run_id}`)).body as Run,
		(run) => run.status === 'completed',
	)
}

void t.test('text from the model becomes a file of the run, in events and history too', async (t) => {
	const agent = await newAgent()
	const run = await complete(agent, sendFile({ text: 'a,b\n1,2\n', name: 'numbers.csv' }))
	t.match(run.files, [{ type: 'file', name: 'numbers.csv', media_type: 'text/csv', size: 8, blob: /^sha256:/ }])
	const blob = run.files?.[0]?.blob
	const read = await fetch(`${gateway.url}/v1/agents/${agent}/blobs/${blob}`)
	t.equal(read.status, 200)
	t.equal(await read.text(), 'a,b\n1,2\n')
	const { body } = await request('GET', `/v1/audit?run_id=${run.run_id}&event_type=run.completed`)
	t.strictSame(body.events[0].payload.files, run.files)
	const history = await request('GET', `/v1/agents/${agent}/history`)
	t.strictSame(history.body.at(-1).attachments, run.files)
})

void t.test('an attachment is sent by its name or digest, also in a later turn', async (t) => {
	const agent = await newAgent()
	const data = png('sent').toString('base64')
	const first = await complete(agent, sendFile({ file: 'cat.png' }), { attachments: [{ data, name: 'cat.png' }] })
	t.match(first.files, [{ type: 'image', name: 'cat.png', media_type: 'image/png' }])
	const blob = first.files?.[0]?.blob ?? ''
	const later = await complete(agent, sendFile({ file: blob.slice(0, 19), name: 'again.png' }))
	t.match(later.files, [{ name: 'again.png', blob }])
	const unknown = await complete(agent, sendFile({ file: 'dog.png' }))
	t.notOk(unknown.files)
	t.match(unknown.answer, /no file .*dog\.png.*there are: .*cat\.png/s)
	const other = await complete(agent, sendFile({ file: blob }), { conversation: 'elsewhere' })
	t.match(other.answer, /there are: none/, 'files of other conversations are not offered')
})

void t.test('the same file is sent once, and errors of limits state what to change', async (t) => {
	const agent = await newAgent()
	const file = { text: 'x', name: 'x.txt' }
	t.equal((await complete(agent, [sendFile(file), sendFile(file)].join('\n'))).files?.length, 1)
	const eleven = Array.from({ length: 11 }, (_, n) => sendFile({ text: `${n}`, name: `${n}.txt` })).join('\n')
	const many = await complete(agent, eleven)
	t.equal(many.files?.length, 10)
	t.match(many.answer, /10 files; put several into one/)
	for (const mark of ['0', '1', '2']) {
		const path = `${gateway.url}/v1/agents/${agent}/blobs`
		const uploaded = await fetch(path, { method: 'POST', body: png(mark.repeat(900_000)) })
		const { blob } = (await uploaded.json()) as { blob: string }
		await complete(agent, 'keep it', { attachments: [{ blob, name: `${mark}.png` }] })
	}
	const large = await complete(agent, [0, 1, 2].map((n) => sendFile({ file: `${n}.png` })).join('\n'))
	t.equal(large.files?.length, 2)
	t.match(large.answer, /2 MiB together/)
	const without = await complete(agent, sendFile({ text: 'no name' }))
	t.match(without.answer, /name/)
})

void t.test('the blob of a file is deleted with its run', async (t) => {
	const agent = await newAgent()
	const run = await complete(agent, sendFile({ text: 'kept', name: 'kept.txt' }), { conversation: 'kept' })
	const path = `/v1/agents/${agent}/blobs/${run.files?.[0]?.blob}`
	t.equal((await request('DELETE', `/v1/agents/${agent}/conversations/api:kept`)).status, 204)
	await eventually(
		async () => (await fetch(gateway.url + path)).status,
		(status) => status === 404,
	)
})

void t.test('files and their names are redacted', async (t) => {
	const agent = await newAgent()
	const value = 'a-secret-value-of-this-test-7f3a'
	const { body } = await request('POST', '/v1/vault/secrets', { body: { name: 'SENT', value } })
	await request('POST', `/v1/vault/grants`, { body: { agent_id: agent, secret_id: body.id } })
	await complete(agent, '/tool vault.read {"name":"SENT"}')
	const run = await complete(agent, sendFile({ text: `it is ${value}.`, name: 'told.txt' }))
	const read = await fetch(`${gateway.url}/v1/agents/${agent}/blobs/${run.files?.[0]?.blob}`)
	t.equal(await read.text(), 'it is [redacted].')

	const named = sendFile({ text: 'x', name: `${value}.txt` })
	const { files } = await complete(agent, [named, named].join('\n'))
	t.match(files, [{ name: '[redacted].txt' }])
	t.equal(files?.length, 1)
	const again = await complete(agent, sendFile({ file: '[redacted].txt', name: `again ${value}.txt` }))
	t.match(again.files, [{ name: 'again [redacted].txt' }])
})

void t.test('a sub-agent cannot send files', async (t) => {
	const agent = await newAgent()
	const run = await complete(
		agent,
		`/tool subagent.spawn ${JSON.stringify({ prompt: sendFile({ text: 'x', name: 'x.txt' }) })}`,
	)
	t.match(run.answer, /cannot have files/)
	await request('POST', '/v1/agents', { body: { name: 'held', config: { provider: 'held' } } })
	const isOffered = ({ body }: ManualCall): boolean =>
		(body.tools as { function: { name: string } }[]).some((tool) => tool.function.name === 'conversation_send_file')
	await request('POST', '/v1/agents/held/runs', { body: { prompt: 'delegate it' } })
	const call = await held.called('delegate it')
	t.equal(isOffered(call), true)
	call.callTool('subagent_spawn', JSON.stringify({ prompt: 'by a sub-agent' }))
	const child = await held.called('by a sub-agent')
	t.equal(isOffered(child), false)
	child.answer('Done.')
	// Otherwise the gateway would wait for the run when it stops.
	;(await held.called('delegate it', 2)).answer('Done, too.')
})

void t.test('an empty answer after a file completes the run', async (t) => {
	await request('POST', '/v1/agents', { body: { name: 'silent', config: { provider: 'silent' } } })
	const run = await complete('silent', 'only the file')
	t.match(run, { answer: 'only.csv', files: [{ name: 'only.csv' }] })
	t.equal(silent.requests.length, 4, 'the model was called twice more for an answer')
	const { body } = await request('POST', '/v1/agents/silent/runs', { body: { prompt: 'and now nothing' } })
	const failed = await eventually(
		async () => (await request('GET', `/v1/runs/${body.run_id}`)).body as Run & { error: { code: string } | null },
		({ status }) => status === 'failed',
	)
	t.equal(failed.error?.code, 'model_empty', 'a run without files needs an answer')
	t.match(JSON.stringify(silent.requests.at(-1)?.body), /only\.csv/, 'the next turn includes the answer')
})
