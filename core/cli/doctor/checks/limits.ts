/** Limits that the system or a container sets for the process. */
import { readFile } from 'node:fs/promises'
import { note, ok } from '../contract.ts'
import type { Check } from '../contract.ts'

const FILES = 1_024
const MEMORY_MIB = 512
const MIB = 1024 * 1024

export const limitChecks: Check[] = [
	{
		id: 'limits.files',
		about: 'how many files and connections may be open',
		async run(context) {
			const pid = (await context.gateway())?.pid ?? 'self'
			const text = await readFile(`/proc/${/^\d+$/.test(pid) ? pid : 'self'}/limits`, 'utf8').catch(() => '')
			const openFiles = /^Max open files +(\d+|unlimited)/m.exec(text)?.[1]
			if (openFiles === undefined) return []
			if (openFiles === 'unlimited' || Number(openFiles) >= FILES)
				return ok(
					`${openFiles === 'unlimited' ? 'any number of' : openFiles} files and connections may be open at once`,
				)
			return note(
				`only ${openFiles} files and connections may be open at once`,
				`raise it: ulimit -n ${FILES * 8}, or LimitNOFILE=${FILES * 8} in the systemd unit`,
			)
		},
	},
	{
		id: 'limits.memory',
		about: 'how much memory the container allows',
		async run() {
			const limit = process.constrainedMemory() / MIB
			// Without a limit, some systems report 0 and others a number beyond all memory.
			if (limit === 0 || limit > 2 ** 30) return []
			if (limit >= MEMORY_MIB) return ok(`the container may use ${Math.floor(limit)} MiB of memory`)
			return note(
				`the container may use ${Math.floor(limit)} MiB of memory; many concurrent runs need more`,
				`give it at least ${MEMORY_MIB} MiB, or lower workers.threads in gateway.yaml`,
			)
		},
	},
]
