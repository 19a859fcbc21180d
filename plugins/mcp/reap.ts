/** Kills the processes that an earlier gateway of this home left behind, and no others. */
import { readFileSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Logger } from '../../core/log/log.ts'
import { findMarked, isRunning, signalGroup, sweep } from './process-table.ts'
import type { RunningProcess, ProcessMark } from './process-table.ts'

/** `folder`: the home's `run/mcp`, with a file for each process that was not ended. */
export async function reap(folder: string, log: Logger): Promise<void> {
	const left = leftovers(folder)
	if (left.size === 0) return
	const marked = (await findMarked()).filter((one) => left.has(one.mark))
	const groups = groupsOf(left, marked)
	if (marked.length > 0 || groups.length > 0) {
		log.warn({ processes: marked.length }, 'killing MCP servers that an earlier gateway left running')
		for (const group of groups) signalGroup(group, 'SIGKILL')
		await sweep(left)
	}
	for (const name of readdirSync(folder)) rmSync(join(folder, name), { recursive: true, force: true, maxRetries: 2 })
}

/** The processes of an earlier gateway, by mark. Undefined if the pid was not written. */
function leftovers(folder: string): Map<string, ProcessMark | undefined> {
	const left = new Map<string, ProcessMark | undefined>()
	let names: string[] = []
	try {
		names = readdirSync(folder)
	} catch {
		return left // no server was ever started
	}
	for (const name of names) {
		const mark = /^([0-9a-f]{32})\.json$/.exec(name)?.[1]
		if (mark !== undefined) left.set(mark, readMark(join(folder, name)))
	}
	return left
}

function readMark(file: string): ProcessMark | undefined {
	try {
		const { pid, started, boot } = JSON.parse(readFileSync(file, 'utf8')) as Partial<ProcessMark>
		return typeof pid === 'number' && started !== undefined && boot !== undefined ? { pid, started, boot } : undefined
	} catch {
		return undefined // the kill interrupted the write: the mark in the environment identifies the process
	}
}

/**
 * The process groups that certainly belong to a leftover: the leader is still the same process, or a member has the mark. The
 * system does not reuse the number of a group that has members.
 */
function groupsOf(left: ReadonlyMap<string, ProcessMark | undefined>, marked: readonly RunningProcess[]): number[] {
	const groups = new Set<number>()
	for (const [mark, leader] of left) {
		if (!leader) continue
		const isSame = isRunning(leader) || marked.some((one) => one.mark === mark && one.group === leader.pid)
		if (isSame) groups.add(leader.pid)
	}
	return [...groups]
}
