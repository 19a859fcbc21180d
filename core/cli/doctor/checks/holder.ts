/** The process that holds the home, and its runtime file. */
import { rm } from 'node:fs/promises'
import { error, ok, warning } from '../contract.ts'
import { isFault } from '../../../errors.ts'
import type { Check, Reply } from '../contract.ts'
import { runtimeFileOf } from '../../../process/runtime-file.ts'
import { readAnnounced } from '../gateway.ts'
import { statOf } from '../stat-of.ts'
import { holderOf } from '../../../process/lock.ts'

export const holderChecks: Check[] = [
	{
		id: 'home.lock',
		about: 'which process uses the home',
		async run(context) {
			const gateway = await context.gateway()
			if (!gateway) return ok('no gateway runs with this home')
			const { pid, url } = gateway
			const end = pid === 'unknown' ? 'end it' : `end it (kill ${pid})`
			const todo = `wait a moment; if that does not help, ${end} and start it again: svc start`
			if (url === null)
				return warning(
					`process ${pid} uses the home and does not report where it listens: it is starting or stopping`,
					todo,
				)
			const alive = await context.ask(`${url}/healthz`).catch((thrown: unknown) => thrown)
			if (isFault(alive, 'fetch_timeout'))
				return error(`process ${pid} accepts connections at ${url}, but does not answer`, todo)
			if ((alive as Reply | undefined)?.status === 200) return ok(`the gateway runs at ${url} (process ${pid})`)
			return error(`process ${pid} uses the home, but nothing answers at ${url}`, todo)
		},
	},
	{
		id: 'run.json-stale',
		about: 'whether run/gateway.json belongs to a running gateway',
		async run(context) {
			const file = runtimeFileOf(context.home)
			if (!(await statOf(file))) return []
			const gateway = await context.gateway()
			const announced = await readAnnounced(context.home)
			if (!gateway)
				return warning(
					`${file} was left behind by a gateway that was killed`,
					'remove it: svc doctor --fix',
					async () => {
						if ((await holderOf(context.home)) !== null) return 'not removed: a gateway is running now'
						await rm(file, { force: true })
						return `removed ${file}`
					},
				)
			if (announced && (gateway.pid === 'unknown' || String(announced.pid) === gateway.pid))
				return ok('run/gateway.json belongs to the running gateway')
			return warning(
				announced
					? `${file} names process ${announced.pid}, but the gateway is process ${gateway.pid}`
					: `${file} cannot be read`,
				'restart the gateway, which writes it again',
			)
		},
	},
]
