/** Signals to processes and groups of processes. */

/** Signals every member of a group; 0 only checks. False if the group has no members; a zombie counts as one. */
export function signalGroup(group: number, name: NodeJS.Signals | 0): boolean {
	return signal(process.platform === 'win32' ? group : -group, name)
}

/** False if there is no process to signal. */
export function signal(pid: number, name: NodeJS.Signals | 0): boolean {
	try {
		process.kill(pid, name)
		return true
	} catch {
		return false
	}
}
