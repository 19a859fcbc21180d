/** Reports that the process can open no more files. The system then accepts and closes connections, and Node reports no error. */
import { close, open } from 'node:fs'
import { devNull } from 'node:os'
import type { Logger } from '../log/log.ts'

const CHECK_MS = 1_000
const REPORT_INTERVAL_MS = 60_000

/** Returns a function to call for each new connection. It starts a check that runs every second until `isIdle`. */
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
			if (performance.now() - reported < REPORT_INTERVAL_MS) return
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
