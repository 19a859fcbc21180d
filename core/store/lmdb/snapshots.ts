import { fork } from 'node:child_process'
import { addAbortListener, once } from 'node:events'
import { chmodSync, readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Fault, messageOf } from '../../errors.ts'
import type { Logger } from '../../log/log.ts'
import { openSerialQueue } from '../../util/serial-queue.ts'
import type { Snapshots } from '../ports.ts'
import type { Env } from './env.ts'
import { dataFile } from './tables.ts'
import { programOf } from '../../util/own-code.ts'
import type { Writer } from './writer.ts'

interface SnapshotOptions {
	/** The data folder. */
	path: string
	log: Logger | undefined
	/** Files of this size and above are copied by a separate process. 64 MiB if undefined. */
	apartFrom: number | undefined
}

const child = fileURLToPath(programOf(new URL('./copy-child.ts', import.meta.url)))

/**
 * LMDB's own hot copy, taken from the pages of one read transaction while writes continue. Free pages are omitted, so it
 * contains no deleted data. Like data files, it can be used on every 64-bit little-endian machine: the pages of lmdb-js have
 * 4 KiB everywhere.
 *
 * Copying maps the whole file into memory. For a large file a child process does that, so that the gateway's memory does
 * not grow.
 */
export function openSnapshots({ root }: Env, writer: Writer, options: SnapshotOptions) {
	const { path, log, apartFrom = 64 * 1024 * 1024 } = options
	const copies = openSerialQueue()
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
		using _ = signal && addAbortListener(signal, () => process.kill('SIGKILL'))
		let errors = ''
		process.stderr?.on('data', (data: Buffer) => (errors = (errors + data.toString()).slice(0, 1000)))
		const [code] = (await once(process, 'exit')) as [number | null]
		if (code === 0) return
		root.readerCheck() // removes the entry of the dead reader, which would pin its pages forever
		throw new Error(errors || `its process ended with ${code}`)
	}

	const copy = async (folder: string, signal?: AbortSignal): Promise<void> => {
		signal?.throwIfAborted()
		const file = join(folder, dataFile)
		if (size() < apartFrom) await copyHere(folder)
		else {
			await copyApart(folder, signal).catch((error: unknown) => {
				signal?.throwIfAborted()
				log?.warn({ err: error }, 'the store could not be copied by a separate process, so the gateway copies it')
				rmSync(file, { recursive: true, force: true })
				return copyHere(folder)
			})
		}
		chmodSync(file, 0o600)
	}

	return {
		size,
		async take(folder: string, signal?: AbortSignal): Promise<void> {
			writer.mustBeOpen()
			if (readdirSync(folder).length > 0) throw new Fault('unavailable', `the folder ${folder} is not empty`)
			await copies.run(() => copy(folder, signal))
		},
		/** Settles once no copy is in progress: LMDB must not be closed before. */
		idle: () => copies.idle(),
	} satisfies Snapshots & { idle(): Promise<void> }
}

/** Copies without free pages, or with them if LMDB refuses because its count of free pages is inconsistent. */
export async function copyInto(root: Env['root'], folder: string): Promise<void> {
	await root.backup(folder, true).catch(() => {
		rmSync(join(folder, dataFile), { force: true })
		return root.backup(folder, false)
	})
}
