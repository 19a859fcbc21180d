/**
 * Lets programs that mean harm loose, each in a call of its own, beside calls that mean none. Whatever they do: this process
 * stays and goes on, only their own call fails, with a stable code, and none of the canaries is touched.
 *
 * `HOSTILE=all` lets all of them loose, `HOSTILE=<part of a name>` those alone.
 */
import { once } from 'node:events'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { Fault, isFault } from '../../../core/errors.ts'
import { openLog } from '../../../core/log/log.ts'
import { openHosts } from '../../../plugins/skills/hosts.ts'
import type { ProgramCall, ProgramHosts } from '../../../plugins/skills/hosts.ts'
import { moduleOf } from './program.ts'
import type { Hostile } from './program.ts'

/** Small, so that all of them fit into a minute; a process of its own takes 60 MiB. */
const settings = {
	processes: 3,
	waiting_processes: 0,
	max_waiting: 1000,
	memory_mib: 24,
	process_mib: 224,
	cpu_s: 0.1,
	wall_time_s: 5,
}
const benign = 'export default async ({ n }, svc) => ({ twice: n * 2, echo: await svc.primitive("echo", n) })'
const only = process.env.HOSTILE

interface Ended {
	code: string
	value?: unknown
	text: string
}

/** Without HOSTILE only each third of them; each `3 * every`th, where each takes its whole limit of time. */
export async function attack(
	t: Test,
	programs: readonly Hostile[],
	{ every = 1, cpu_s = settings.cpu_s } = {},
): Promise<void> {
	const canary = `canary-${process.pid}-${Date.now()}`
	const file = join(tmpdir(), canary)
	writeFileSync(file, canary)
	process.env.SVC_CANARY = canary
	let knocks = 0
	const server = createServer(() => knocks++).listen(0, '127.0.0.1')
	await once(server, 'listening')
	const { port } = server.address() as AddressInfo
	const said: string[] = []
	const hosts = openHosts({ settings: { ...settings, cpu_s }, log: openLog({ level: 'silent', format: 'json' }) })
	const call = (code: string, args: Record<string, unknown>): Promise<Ended> => run(hosts, code, args, said)

	/** Two lanes, so that hostile programs meet each other as well. */
	const isChosen = ({ name }: Hostile, at: number): boolean =>
		only === undefined ? at % (3 * every) === 0 : only === 'all' || name.includes(only)
	const left = programs.filter(isChosen).values()
	let n = 0
	const lane = async (): Promise<void> => {
		for (const hostile of left) {
			const mine = n++
			const [ended, beside] = await Promise.all([call(moduleOf(hostile), { port }), call(benign, { n: mine })])
			const { code, value, text } = ended
			t.ok(hostile.ends.includes(code as never), `${hostile.name}: ${code}`, { text: text.slice(0, 300) })
			if (code === 'answers' && 'answer' in hostile) t.same(value, hostile.answer, `${hostile.name}: its answer`)
			if (code !== 'answers') t.ok(text.length < 1100, 'a message is short')
			t.notMatch(text, /canary-|\/(?:home|work|tmp|root|usr|proc)\/|node_modules/, 'it shows nothing of the host')
			t.same(beside.value, { twice: mine * 2, echo: mine }, 'a call beside it goes on')
			t.ok(children().length <= settings.processes, 'no process is left over')
		}
	}
	await Promise.all([lane(), lane()])

	t.equal(knocks, 0, 'nobody has knocked')
	t.equal(readFileSync(file, 'utf8'), canary)
	t.notOk(said.join('').includes(canary), 'no line holds the canary')
	t.equal(({} as { polluted?: unknown }).polluted, undefined)
	await hosts[Symbol.asyncDispose]()
	t.same(children(), [], 'no process is left at the end')
	server.close()
	rmSync(file)
}

async function run(hosts: ProgramHosts, code: string, args: Record<string, unknown>, said: string[]): Promise<Ended> {
	try {
		const value = await hosts.run({
			owner: 'one',
			program: { code, language: 'javascript' },
			args,
			signal: new AbortController().signal,
			called,
			logged: (text) => said.push(text),
		})
		return { code: 'answers', value, text: JSON.stringify(value) }
	} catch (error) {
		return { code: isFault(error) ? error.code : 'a bug', text: String(error) }
	}
}

const called: ProgramCall['called'] = async (what, body, signal) => {
	const { name, args } = body as { name?: unknown; args?: unknown }
	if (what === 'fetch') throw new Fault('address_refused', 'only https')
	if (what === 'secret') throw new Fault('permission_denied', 'the skill does not declare it')
	if (name === 'echo') return args
	if (name === 'broken') throw new Error(`a secret at ${join(tmpdir(), 'canary-')}`)
	if (name !== 'hang') throw new Fault('permission_denied', 'the skill does not declare it')
	return new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('aborted'))))
}

/** Processes whose parent this is; none where there is no /proc. */
function children(): number[] {
	try {
		const list = readFileSync(`/proc/${process.pid}/task/${process.pid}/children`, 'utf8')
		return list.split(' ').filter(Boolean).map(Number)
	} catch {
		return []
	}
}
