import { error, ok } from '../contract.ts'
import type { Check, Finding } from '../contract.ts'
import { holderOfPort } from '../port-holder.ts'
import type { PortHolder } from '../port-holder.ts'
import { tryListening } from '../../try-listening.ts'

export const portChecks: Check[] = [
	{
		id: 'port.free',
		about: 'the ports of the gateway',
		async run(context) {
			const config = await context.config()
			const { server } = config
			const gateway = await context.gateway()
			if (gateway) return ok(`the gateway of this home has its ports (process ${gateway.pid})`)
			const wanted = [
				{ setting: 'server.port', port: server.port },
				...(await context.doctorFiles()).flatMap(({ ports }) => ports?.(config) ?? []),
			].filter(({ port }) => port !== 0)
			const findings = await Promise.all(wanted.map((one) => tryPort({ ...one, host: server.host })))
			const problems = findings.filter((finding) => finding !== null)
			if (problems.length > 0) return problems
			return ok(
				wanted.length > 0 ? `free ports: ${wanted.map(({ port }) => port).join(', ')}` : 'the system picks free ports',
			)
		},
	},
]

interface PortSetting {
	setting: string
	host: string
	port: number
}

/** Null if the gateway could listen there. */
async function tryPort({ setting, host, port }: PortSetting): Promise<Finding | null> {
	const refused = await tryListening({ host, port })
	if (!refused) return null
	switch (refused.code) {
		case 'EADDRINUSE': {
			const holder = await holderOfPort(port)
			return error(
				`port ${port} (${setting}) is in use by ${inWords(holder)}`,
				`end that ${holder?.home === undefined ? 'program' : 'gateway'}, or set ${setting} in gateway.yaml to a free port`,
			)
		}
		case 'EACCES':
			return error(
				`this user may not listen at port ${port} (${setting})`,
				`set ${setting} to a port from 1024 on, and let a reverse proxy serve ${port}`,
			)
		default:
			return error(
				`${host} (server.host) is not an address of this machine (${refused.code})`,
				'set server.host in gateway.yaml to 127.0.0.1, or to an address that this machine has: ip addr',
			)
	}
}

function inWords(holder: PortHolder | undefined): string {
	if (!holder) return 'another program'
	const { pid, name, home } = holder
	return home === undefined ? `${name} (process ${pid})` : `the gateway of the home ${home} (process ${pid})`
}
