/**
 * Allows one installation at a time in a clone. In plain JavaScript, since no package may be installed yet.
 *
 * The lock is a folder of numbered files; the file with the highest number names the processes that hold the lock. It is
 * free if all of them have ended, however they ended, or if the file is empty. A process takes the lock by creating the
 * file with the next number, which only one process can do. So a lock that a killed process left needs no cleanup, during
 * which two processes could each believe that they took the lock.
 */
import { appendFileSync, linkSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { root } from '../../process/handover.mjs'

const folder = join(root, '.install')
const LIMIT_MS = 10 * 60_000
const PAUSE_MS = 100

/**
 * Waits for the lock, 10 minutes at most, then throws. A line on standard error names each process that it waits for. The
 * result's `add` names one more process that must end before the lock is free; `release` frees the lock.
 */
export async function takeInstallLock() {
	mkdirSync(folder, { recursive: true })
	const end = Date.now() + LIMIT_MS
	for (let said; ;) {
		const last = numbers().at(-1) ?? 0
		const holder = holderOf(join(folder, String(last)))
		const file = holder === undefined ? claim(last + 1) : undefined
		if (file) {
			return {
				add: (pid) => appendFileSync(file, identityOf(pid)),
				release: () => writeFileSync(file, ''),
			}
		}
		if (holder !== undefined && holder !== said) {
			process.stderr.write(`Waiting for process ${holder}, which installs packages or builds the bundle in ${root} …\n`)
			said = holder
		}
		if (Date.now() > end)
			throw new Error(
				`process ${said} has been installing packages or building the bundle for more than ${LIMIT_MS / 60_000} minutes: end it`,
			)
		await pause(PAUSE_MS)
	}
}

/** Creates the file with its whole content at once; undefined if another process was faster. */
function claim(number) {
	const file = join(folder, String(number))
	const draft = join(folder, `draft-${process.pid}`)
	writeFileSync(draft, identityOf(process.pid))
	try {
		linkSync(draft, file)
	} catch (error) {
		if (error.code === 'EEXIST') return undefined
		throw error
	} finally {
		rmSync(draft, { force: true })
	}
	const taken = numbers()
	// Another process has taken, released and removed this number since it was chosen.
	if (taken.at(-1) !== number) {
		rmSync(file, { force: true })
		return undefined
	}
	for (const old of taken) if (old < number) rmSync(join(folder, String(old)), { force: true })
	return file
}

function numbers() {
	return readdirSync(folder)
		.filter((name) => /^\d+$/.test(name))
		.map(Number)
		.sort((a, b) => a - b)
}

/** The first process of the file that has not ended. */
function holderOf(file) {
	let text = ''
	try {
		text = readFileSync(file, 'utf8')
	} catch (error) {
		if (error.code !== 'ENOENT') throw error
	}
	const lines = text.split('\n').filter((line) => line !== '')
	return lines.map((line) => Number(line.split(' ')[0])).find((pid, at) => `${lines[at]}\n` === identityOf(pid))
}

/** A line with a process id and, where the system reports it, its start time, since ids are reused; empty if it has ended. */
function identityOf(pid) {
	try {
		// After the name, which may hold anything in parentheses: the state, and 19 fields later the time.
		const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1).split(' ')
		return fields[0] === 'Z' ? '' : `${pid} ${fields[19]}\n`
	} catch {
		// No such process, or a system without /proc.
	}
	try {
		process.kill(pid, 0)
		return `${pid}\n`
	} catch (error) {
		return error.code === 'EPERM' ? `${pid}\n` : ''
	}
}
