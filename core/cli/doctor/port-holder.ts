/** Which process listens at a port, from /proc: only root sees other users' processes. Without /proc, none is found. */
import { readFile, readdir, readlink } from 'node:fs/promises'
import { join } from 'node:path'
import { expandPath } from '../../../config/home.ts'
import { readRuntimeFile } from '../../process/runtime-file.ts'

export interface PortHolder {
	pid: string
	/** Of its program, without the arguments, which may contain secrets. */
	name: string
	/** The home of a gateway; absent for another program. */
	home?: string
}

const LISTENING = '0A'
/** Processes that are searched; a hundred take a few milliseconds. */
const PROCESSES = 2_000

/** Undefined if nothing listens there, or the process cannot be found. */
export async function holderOfPort(port: number): Promise<PortHolder | undefined> {
	const tables = await Promise.all(['tcp', 'tcp6'].map((name) => readFile(`/proc/net/${name}`, 'utf8').catch(() => '')))
	const wanted = new Set(tables.flatMap((table) => inodesOf(table, port)).map((inode) => `socket:[${inode}]`))
	if (wanted.size === 0) return undefined
	const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
	for (const pid of pids.slice(0, PROCESSES)) {
		if (!(await holds(pid, wanted))) continue
		const name = await readFile(`/proc/${pid}/comm`, 'utf8').catch(() => 'a program')
		const home = await homeOf(pid)
		return { pid, name: name.trim(), ...(home !== undefined && { home }) }
	}
	return undefined
}

/** The home of a gateway, whose runtime file must name the process; undefined for another program. */
async function homeOf(pid: string): Promise<string | undefined> {
	const [text, cwd] = await Promise.all([
		readFile(`/proc/${pid}/environ`, 'utf8').catch(() => ''),
		readlink(`/proc/${pid}/cwd`).catch(() => '/'),
	])
	const variables = new Map(text.split('\0').map((line) => [line.split('=', 1)[0], line.slice(line.indexOf('=') + 1)]))
	const [named, own] = [variables.get('SVC_HOME'), variables.get('HOME')]
	const home = named ? expandPath(named, cwd) : own && join(own, '.svc')
	return home && readRuntimeFile(home)?.pid === Number(pid) ? home : undefined
}

/** Columns: number, local address as HEX:PORT, remote address, state, … the tenth is the inode. */
function inodesOf(table: string, port: number): string[] {
	const end = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
	return table
		.split('\n')
		.map((line) => line.trim().split(/\s+/))
		.flatMap((columns) => (columns[1]?.endsWith(end) && columns[3] === LISTENING && columns[9] ? columns[9] : []))
}

async function holds(pid: string, sockets: ReadonlySet<string>): Promise<boolean> {
	const folder = `/proc/${pid}/fd`
	const files = await readdir(folder).catch(() => [])
	for (const file of files) {
		const target = await readlink(`${folder}/${file}`).catch(() => '')
		if (sockets.has(target)) return true
	}
	return false
}
