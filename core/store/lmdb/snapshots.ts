import { fork } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Fault, messageOf } from '../../errors.ts'
import type { Logger } from '../../log.ts'
import type { Snapshots } from '../ports.ts'
import type { Env } from './env.ts'
import { dataFile } from './tables.ts'
import type { Writer } from './writer.ts'

export interface LmdbSnapshots extends Snapshots {
	/** Settles once no copy is under way: LMDB must not be closed before. */
	idle(): Promise<void>
}

export interface SnapshotOptions {
	/** The folder of the data. */
	path: string
	log?: Logger
	/** Files from this size on are copied by a process of their own. 64 MiB where absent. */
	apartFrom?: number
}

const child = fileURLToPath(new URL('./copy-child.ts', import.meta.url))

/**
 * LMDB's own hot copy, made from the pages of one read transaction, whatever is written meanwhile. Free pages are left out,
 * so that what was deleted is not in it. As data files are, it is good for every 64-bit little-endian machine: the pages of
 * lmdb-js have 4 KiB everywhere.
 *
 * Whoever copies maps all of the file into its memory. For a large one that is another process, so that the gateway stays
 * as small as it is.
 */
export function openSnapshots({ root }: Env, writer: Writer, options: SnapshotOptions): LmdbSnapshots {
	const { path, log, apartFrom = 64 * 1024 * 1024 } = options
	const underWay = new Set<Promise<void>>()
	const size = (): number => statSync(join(path, dataFile)).size

	const copyHere = async (folder: string): Promise<void> => {
		try {
			await copyInto(root, folder)
		} catch (error) {
			throw new Fault('unavailable', `the data of ${path} cannot be copied: ${messageOf(error)}`, { cause: error })
		}
	}

	const copyApart = async (folder: string, signal?: AbortSignal): Promise<void> => {
		const process = fork(child, [path, folder], { execArgv: [], stdio: ['ignore', 'ignore', 'pipe', 'ipc'] })
		const end = (): void => void process.kill('SIGKILL')
		signal?.addEventListener('abort', end)
		let said = ''
		process.stderr?.on('data', (data: Buffer) => (said = (said + data.toString()).slice(0, 1000)))
		const [code] = (await once(process, 'exit').finally(() => signal?.removeEventListener('abort', end))) as [
			number | null,
		]
		if (code === 0) return
		root.readerCheck() // the mark of a reader that is gone would keep its pages for ever
		throw new Error(said || `its process ended with ${code}`)
	}

	const copy = async (folder: string, signal?: AbortSignal): Promise<void> => {
		signal?.throwIfAborted()
		const file = join(folder, dataFile)
		if (size() < apartFrom) await copyHere(folder)
		else {
			await copyApart(folder, signal).catch((error: unknown) => {
				signal?.throwIfAborted()
				log?.warn({ err: error }, 'the store could not be copied by a process of its own, so the gateway copies it')
				rmSync(file, { recursive: true, force: true })
				return copyHere(folder)
			})
		}
		chmodSync(file, 0o600)
	}

	return {
		size,
		async take(folder, signal) {
			writer.mustBeOpen()
			if (readdirSync(folder).length > 0) throw new Fault('unavailable', `the folder ${folder} is not empty`)
			const copied = copy(folder, signal)
			underWay.add(copied)
			try {
				await copied
			} finally {
				underWay.delete(copied)
			}
		},
		async idle() {
			await Promise.allSettled(underWay)
		},
	}
}

/** Without free pages; where LMDB's count of those does not come out even, it refuses, and they are copied along. */
export async function copyInto(root: Env['root'], folder: string): Promise<void> {
	await root.backup(folder, true).catch(() => {
		rmSync(join(folder, dataFile), { force: true })
		return root.backup(folder, false)
	})
}
