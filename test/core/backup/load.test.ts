/** Backups of a gateway under load: their content, and kills of the gateway while it makes one. */
import { randomBytes } from 'node:crypto'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import { readConfig } from '../../../core/host/config.ts'
import { originOf, partialOf } from '../../../core/backup/names.ts'
import { restoreBackup } from '../../../core/backup/restore.ts'
import { verifyBackup } from '../../../core/backup/verify.ts'
import { addToken } from '../../support/add.ts'
import { endedRun } from '../../support/ended-run.ts'
import { startGateway } from '../../support/gateway.ts'
import type { Answer, TestGateway } from '../../support/gateway.ts'
import { spawnGateway } from '../../support/process.ts'
import { openStream } from '../../support/sse.ts'
import { write } from './support.ts'
import { testFolder } from '../../support/folder.ts'

const kills = Number(process.env['BACKUP_KILLS'] ?? 1)
const folder = testFolder(t)

/** Acknowledged data: by path, the response to a GET. */
type Responses = Map<string, Answer>

async function read(gateway: TestGateway, path: string): Promise<Answer> {
	const { status, body } = await gateway.request('GET', path)
	return { status, body }
}

/** Creates agents, memories, secrets and runs until the signal aborts. Records the responses that no longer change. */
async function load(gateway: TestGateway, worker: number, responses: Responses, signal: AbortSignal): Promise<void> {
	const post = async (path: string, body: unknown): Promise<Answer> => {
		const reply = await gateway.request('POST', path, { body })
		if (reply.status >= 300) throw new Error(`${path}: ${reply.status} ${JSON.stringify(reply.body)}`)
		return reply.body
	}
	const record = async (path: string): Promise<void> => void responses.set(path, await read(gateway, path))
	for (let n = 0; !signal.aborted; n++) {
		const name = `agent-${worker}-${n}`
		await post('/v1/agents', { name, persona: `Persona ${n} `.repeat(n % 50), config: { note: { n } } })
		await record(`/v1/agents/${name}`)
		await post(`/v1/agents/${name}/memory`, { content: `Fact ${n} of ${name}`, tags: ['fact'] })
		await post('/v1/vault/secrets', { name: `SECRET_${worker}_${n}`, value: `value-${worker}-${n}-${'x'.repeat(20)}` })
		const stream = await openStream(gateway.url, { query: { agent_id: name } })
		const { run_id } = await post(`/v1/agents/${name}/runs`, {
			prompt: `/tool memory.store {"content":"Stored by run ${n}"}`,
		})
		await stream.waitFor((event) => event.run_id === run_id && event.event_type === 'run.completed')
		stream.close()
		await record(`/v1/agents/${name}/memory`)
		await record(`/v1/runs/${run_id}`)
		await record(`/v1/agents/${name}/history`)
		await record(`/v1/audit?run_id=${run_id}`)
	}
}

void t.test(
	'a restored backup that was made under load has all data acknowledged before it, field by field',
	async (t) => {
		const gateway = await startGateway({ config: 'log:\n  level: fatal\n' })
		t.teardown(() => gateway.stop())
		write(gateway.home, { 'plugins/idle/readme.txt': 'Not a plugin yet.\n' })
		const asker = (await gateway.request('POST', '/v1/agents', { body: { name: 'asker' } })).body
		const stream = await openStream(gateway.url, { query: { agent_id: asker.name } })
		await gateway.request('POST', '/v1/agents/asker/runs', {
			body: { prompt: '/tool ask {"question":"Still there?"}' },
		})
		const asked = await stream.waitFor('question.asked')
		await stream.waitFor('run.paused')
		stream.close()
		const token = await addToken(gateway, ['*'])
		const authorized = { token: token.token as string }

		const responses: Responses = new Map()
		const stop = new AbortController()
		const work = [0, 1, 2].map((worker) => load(gateway, worker, responses, stop.signal))
		const stalls = watchStalls()
		while (responses.size < 15) await pause(5)
		const before = new Map(responses)
		const head = Number(gateway.running.gateway.events.head())
		stalls.reset()
		const reply = await gateway.request('POST', '/v1/backups')
		const stalled = stalls.worst()
		t.equal(reply.status, 201, JSON.stringify(reply.body))
		t.comment(
			`${before.size} responses recorded before, ${responses.size - before.size} meanwhile; longest stall ${stalled} ms`,
		)
		stop.abort()
		await Promise.all(work)
		stalls.stop()
		const { manifest } = await verifyBackup(reply.body.file)
		t.ok(Number(manifest.store.head) >= head, `the log was at ${head}, the backup is at ${manifest.store.head}`)
		t.equal(reply.body.records, manifest.store.records)

		const home = join(folder, 'restored')
		await restoreBackup({
			file: reply.body.file,
			home,
			force: false,
			storeOf: (at) => readConfig({ home: at, env: {} }).store.path,
		})
		const restored = await startGateway({ home })
		t.teardown(() => restored.stop())
		for (const [path, wanted] of before) t.strictSame(await read(restored, path), wanted, path)

		// The rest of the backup is consistent, too: every run in it has ended, or resumes and ends.
		const agents: { name: string }[] = (await restored.request('GET', '/v1/agents')).body
		t.ok(agents.length >= before.size / 5)
		for (const { name } of agents) {
			if (name === 'asker') continue
			const runs: { run_id: string }[] = (await restored.request('GET', `/v1/agents/${name}/runs`)).body
			for (const { run_id } of runs) {
				t.equal((await endedRun(restored.url, run_id)).status, 'completed', `${run_id} of ${name}`)
			}
		}
		// Tokens and secrets are unchanged, and a run that waited for an answer resumes with it.
		t.equal((await restored.request('GET', '/v1/backups', authorized)).status, 200)
		const secrets = (await restored.request('GET', '/v1/vault/secrets')).body
		t.match(JSON.stringify(secrets), /SECRET_0_0/)
		const again = await openStream(restored.url, { query: { agent_id: 'asker' } })
		const path = `/v1/agents/asker/ask-responses/${asked.payload['question_id']}`
		t.equal((await restored.request('POST', path, { body: { answer: 'yes' } })).status, 200)
		await again.waitFor('run.completed')
		again.close()
	},
)

/** Measures the longest time for which the event loop was blocked. */
function watchStalls(): { reset(): void; worst(): number; stop(): void } {
	let last = performance.now()
	let worst = 0
	const timer = setInterval(() => {
		const now = performance.now()
		worst = Math.max(worst, now - last)
		last = now
	}, 1)
	return {
		reset: () => void (worst = 0),
		worst: () => Math.round(worst),
		stop: () => clearInterval(timer),
	}
}

void t.test(`no incomplete backup is listed after ${kills} kills during backups`, async (t) => {
	const home = join(folder, 'killed')
	// A few MiB that do not compress, so that a backup takes long enough for a kill.
	write(home, { 'skills/large.bin': randomBytes(8 * 1024 ** 2) })
	const backups = join(home, 'backups')
	const partial = partialOf(backups, originOf(home))
	let partials = 0
	for (let kill = 0; kill < kills; kill++) {
		const gateway = await spawnGateway(home)
		let isAnswered = true
		const ask = async (): Promise<void> => {
			isAnswered = false
			await fetch(`${gateway.url}/v1/backups`, { method: 'POST' }).catch(() => undefined)
			isAnswered = true
		}
		let asked = Promise.resolve()
		const written = [join(partial, 'home', 'data'), join(partial, 'archive')][(kill + 1) % 2] as string
		// A backup may complete while this process is blocked. Then the loop requests another one.
		for (; !existsSync(written); await pause(1)) if (isAnswered) asked = ask()
		await gateway.kill()
		await asked
		const names = existsSync(backups) ? readdirSync(backups) : []
		if (names.some((name) => name.startsWith('.partial'))) partials++
		for (const name of names.filter((one) => one.startsWith('svc-backup-')))
			t.ok((await verifyBackup(join(backups, name))).bytes > 0, `${name} is complete`)
	}
	t.comment(`${partials} of ${kills} kills left an incomplete backup`)
	const last = await spawnGateway(home)
	const made = await fetch(`${last.url}/v1/backups`, { method: 'POST' })
	t.equal(made.status, 201)
	t.strictSame(
		readdirSync(backups).filter((name) => name.startsWith('.')),
		[],
		'incomplete backups are removed',
	)
	t.equal(await last.end(), 0)
})
