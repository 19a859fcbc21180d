/** Reports that the process can open no more files. The system then accepts and closes connections, and Node does not say so. */
import { close, open } from 'node:fs'
import { devNull } from 'node:os'
import type { Logger } from '../log/log.ts'

const CHECK_MS = 1_000
/** While it lasts, it is reported this often. */
const AGAIN_MS = 60_000

/** Call it for each new connection: checks every second until `isIdle`. */
export function openFilesWatch(log: Logger, isIdle: () => boolean): () => void {
	let timer: NodeJS.Timeout | undefined
	let reported = -Infinity
	const check = (): void => {
		if (isIdle()) {
			clearInterval(timer)
			timer = undefined
			return
		}
		open(devNull, (error, descriptor) => {
			if (!error) return close(descriptor)
			if (error.code !== 'EMFILE' && error.code !== 'ENFILE') return
			if (performance.now() - reported < AGAIN_MS) return
			reported = performance.now()
			const whose = error.code === 'EMFILE' ? 'of this process' : 'of the system'
			log.error(
				`the limit ${whose} for open files and connections is reached, so new connections are closed; raise LimitNOFILE in the systemd unit, or ulimit -n`,
			)
		})
	}
	return () => {
		timer ??= setInterval(check, CHECK_MS).unref()
	}
}
