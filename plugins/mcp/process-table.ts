/** Finds processes of this machine in /proc, and signals or kills them. Finds nothing on a system without /proc. */
import { readFileSync } from 'node:fs'
import { readFile, readdir } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'

/** Identifies a process uniquely, even if its pid is reused. */
export interface ProcessMark {
	pid: number
	/** Its start time, in clock ticks since the machine's boot. */
	started: string
	/** Id of the machine's boot. */
	boot: string
}

export interface RunningProcess {
	pid: number
	group: number
	/** The value of the variable. */
	mark: string
}

/** This variable has a unique value in the environment of each server's process. Its descendants inherit it. */
export const VARIABLE = 'SVC_MCP_PROCESS'
const PARALLEL = 16
/** More than one, since these processes may start others during the search. */
const SWEEPS = 3
const PAUSE_MS = 20

/** Undefined if the process has ended, or without /proc. */
export function markOf(pid: number): ProcessMark | undefined {
	try {
		const { state, started } = statOf(readFileSync(`/proc/${pid}/stat`, 'utf8'))
		if (state === 'Z') return undefined // a zombie
		return { pid, started, boot: bootId() }
	} catch {
		return undefined
	}
}

/** Whether this process is still running. */
export function isRunning(mark: ProcessMark): boolean {
	const now = markOf(mark.pid)
	return now !== undefined && now.started === mark.started && now.boot === mark.boot
}

/** Every process of this user that has the variable in its environment. */
export async function findMarked(): Promise<RunningProcess[]> {
	const pids = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name))
	const found: RunningProcess[] = []
	const readNext = async (): Promise<void> => {
		for (let pid = pids.pop(); pid !== undefined; pid = pids.pop()) {
			const marked = await readMarked(pid).catch(() => undefined) // it has ended, or belongs to another user
			if (marked) found.push(marked)
		}
	}
	await Promise.all(Array.from({ length: PARALLEL }, readNext))
	return found
}

async function readMarked(pid: string): Promise<RunningProcess | undefined> {
	const environment = await readFile(`/proc/${pid}/environ`, 'latin1')
	const start = `${VARIABLE}=`
	const line = environment.split('\0').find((one) => one.startsWith(start))
	if (line === undefined) return undefined
	const { group } = statOf(await readFile(`/proc/${pid}/stat`, 'utf8'))
	return { pid: Number(pid), group, mark: line.slice(start.length) }
}

/** The second field, the name, is in parentheses and may itself contain parentheses and spaces. */
function statOf(stat: string): { state: string; group: number; started: string } {
	const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
	return { state: fields[0] ?? '', group: Number(fields[2]), started: fields[19] ?? '' }
}

/** Signals every member of a group; 0 only checks. False if the group has no members. Zombies count as members. */
export function signalGroup(group: number, name: NodeJS.Signals | 0): boolean {
	return signal(process.platform === 'win32' ? group : -group, name)
}

/** False if there is no process to signal. */
function signal(pid: number, name: NodeJS.Signals | 0): boolean {
	try {
		process.kill(pid, name)
		return true
	} catch {
		return false
	}
}

let boot: string | undefined

function bootId(): string {
	return (boot ??= readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim())
}

/** Kills every process that has one of the marks, even if it has left its group, as browsers do. */
export async function sweep(marks: { has(mark: string): boolean }): Promise<void> {
	for (let round = 0; round < SWEEPS; round++) {
		const found = (await findMarked()).filter((one) => marks.has(one.mark))
		if (found.length === 0) return
		for (const { pid } of found) signal(pid, 'SIGKILL')
		await pause(PAUSE_MS)
	}
}

/** The same for many callers: one scan of the machine's processes serves all calls that were made before it started. */
export function sharedSweep(): (mark: string) => Promise<void> {
	let waiting = new Set<string>()
	let next: Promise<void> | undefined
	let current: Promise<void> = Promise.resolve()
	return (mark) => {
		waiting.add(mark)
		return (next ??= current.then(() => {
			const marks = waiting
			waiting = new Set()
			next = undefined
			return (current = sweep(marks))
		}))
	}
}
