/** CPU time and memory of a process, from /proc. */
import { readFileSync } from 'node:fs'

/** A clock tick of /proc/<pid>/stat: USER_HZ, which is 100 on every Linux that Node runs on. */
const TICK_MS = 10
const MIB_PER_KIB = 1 / 1024

/** CPU time of all its threads since its start, in milliseconds. */
export function cpuMs(pid: number): number {
	const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
	// Field 2, the program's name, is in parentheses and may contain spaces; 14 and 15 are user and system time.
	const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
	return (Number(fields[11]) + Number(fields[12])) * TICK_MS
}

/** Memory in RAM, in MiB: in total, and without mapped files such as the database. */
export function memoryMib(pid: number): { resident: number; anonymous: number } {
	const status = readFileSync(`/proc/${pid}/status`, 'utf8')
	const field = (name: string): number =>
		Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]) * MIB_PER_KIB
	return { resident: field('VmRSS'), anonymous: field('RssAnon') }
}

/** Memory in RAM of a process and all its descendants, in MiB. */
export function residentMib(pid: number): number {
	const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean)
	return children.reduce((sum, child) => sum + residentMib(Number(child)), memoryMib(pid).resident)
}
