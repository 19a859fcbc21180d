/**
 * Runs hostile programs, each in a separate call, beside harmless calls. Whatever they do: this process keeps working, only their own
 * call fails, with a documented code, and they reach none of the canaries.
 *
 * `HOSTILE=all` runs all programs, `HOSTILE=<part of a name>` only those.
 */
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { Fault, isFault } from '../../../core/errors.ts'
import { openLog } from '../../../core/log/log.ts'
import { openHosts } from '../../../plugins/skills/hosts.ts'
import type { ProgramCall, ProgramHosts } from '../../../plugins/skills/hosts.ts'
import { listenOnLoopback } from '../../support/loopback.ts'
import { moduleOf } from './program.ts'
import type { Hostile } from './program.ts'

/** Small, so that all programs fit into a minute. A process alone takes 60 MiB. */
const settings = {
	processes: 3,
	waiting_processes: 0,
	max_waiting: 1000,
	memory_mib: 24,
	process_mib: 224,
	cpu_s: 0.1,
	wall_time_s: 5,
}
const harmless = 'export default async ({ n }, svc) => ({ twice: n * 2, echo: await svc.primitive("echo", n) })'
const only = process.env.HOSTILE

interface Result {
	/** `answers`, or the code of the failure. */
	code: string
	value?: unknown
	text: string
}

/** Without HOSTILE only every `3 * every`-th program; `every` is for programs that use up their time limit. */
export async function runHostile(
	t: Test,
	programs: readonly Hostile[],
	{ every = 1, cpu_s = settings.cpu_s } = {},
): Promise<void> {
	const canary = `canary-${process.pid}-${Date.now()}`
	const file = join(tmpdir(), canary)
	writeFileSync(file, canary)
	process.env.SVC_CANARY = canary
	let connections = 0
	const server = createServer().on('connection', () => connections++)
	const { port, stop } = await listenOnLoopback(server)
	const logged: string[] = []
	const hosts = openHosts({ settings: { ...settings, cpu_s }, log: openLog({ level: 'silent', format: 'json' }) })
	const call = (code: string, args: Record<string, unknown>): Promise<Result> => run(hosts, code, args, logged)

	const isChosen = ({ name }: Hostile, at: number): boolean =>
		only === undefined ? at % (3 * every) === 0 : only === 'all' || name.includes(only)
	const chosen = programs.filter(isChosen).values()
	let n = 0
	const runNext = async (): Promise<void> => {
		for (const hostile of chosen) {
			const number = n++
			const [result, other] = await Promise.all([call(moduleOf(hostile), { port }), call(harmless, { n: number })])
			const { code, value, text } = result
			t.ok(hostile.ends.includes(code as never), `${hostile.name}: ${code}`, { text: text.slice(0, 300) })
			if (code === 'answers' && 'answer' in hostile) t.same(value, hostile.answer, `${hostile.name}: its answer`)
			if (code !== 'answers') t.ok(text.length < 1100, 'the message is short')
			t.notMatch(
				text,
				/canary-|\/(?:home|work|tmp|root|usr|proc)\/|node_modules/,
				'the message shows nothing of the host',
			)
			t.same(other.value, { twice: number * 2, echo: number }, 'a concurrent call completes')
			t.ok(children().length <= settings.processes, 'no surplus process is running')
		}
	}
	// Two loops take programs from the same iterator, so that hostile programs also run beside each other.
	await Promise.all([runNext(), runNext()])

	t.equal(connections, 0, 'no program has connected to the canary server')
	t.equal(readFileSync(file, 'utf8'), canary, 'the canary file is unchanged')
	t.notOk(logged.join('').includes(canary), 'no log line contains the canary')
	t.equal(({} as { polluted?: unknown }).polluted, undefined)
	await hosts[Symbol.asyncDispose]()
	t.same(children(), [], 'no process is left')
	await stop()
	rmSync(file)
}

async function run(
	hosts: ProgramHosts,
	code: string,
	args: Record<string, unknown>,
	logged: string[],
): Promise<Result> {
	try {
		const value = await hosts.run({
			owner: 'one',
			program: { code, language: 'javascript' },
			args,
			signal: new AbortController().signal,
			called: answerCall,
			logged: (text) => logged.push(text),
		})
		return { code: 'answers', value, text: JSON.stringify(value) }
	} catch (error) {
		return { code: isFault(error) ? error.code : 'not a fault', text: String(error) }
	}
}

const answerCall: ProgramCall['called'] = async (what, body, signal) => {
	const { name, args } = body as { name?: unknown; args?: unknown }
	if (what === 'fetch') throw new Fault('address_refused', 'only https')
	if (what === 'secret') throw new Fault('permission_denied', 'the skill does not declare it')
	if (name === 'echo') return args
	if (name === 'broken') throw new Error(`a secret at ${join(tmpdir(), 'canary-')}`)
	if (name !== 'hang') throw new Fault('permission_denied', 'the skill does not declare it')
	return new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('aborted'))))
}

/** The child processes of this process; none on systems without /proc. */
function children(): number[] {
	try {
		const list = readFileSync(`/proc/${process.pid}/task/${process.pid}/children`, 'utf8')
		return list.split(' ').filter(Boolean).map(Number)
	} catch {
		return []
	}
}
