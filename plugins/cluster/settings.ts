import type { CustomHelpers, Root, Schema } from 'joi'
import { defineSettings } from '../../config/declaration.ts'
import { wholeNumber } from '../../config/environment.ts'
import { allSettings, section } from '../../config/fields.ts'
import type { ClusterSettings } from './contract.ts'
import { schemes } from './schemes.ts'

const at: Record<keyof ClusterSettings, string> = {
	url: 'store.url',
	prefix: 'store.prefix',
	replicas: 'store.replicas',
	format: 'store.format',
	advertise: 'store.advertise',
	credentials_file: 'store.credentials_file',
	tls: 'store.tls',
	lend: 'workers.lend',
}

const variables = {
	SVC_CLUSTER: 'url',
	SVC_CLUSTER_PREFIX: 'prefix',
	SVC_CLUSTER_REPLICAS: 'replicas',
	SVC_CLUSTER_FORMAT: 'format',
	SVC_CLUSTER_ADVERTISE: 'advertise',
	SVC_CLUSTER_CREDENTIALS: 'credentials_file',
} as const

export default defineSettings<ClusterSettings>({
	// `store.url` has effect without a started plugin.
	required: true,
	at,
	paths: ['credentials_file', 'tls.ca_file', 'tls.cert_file', 'tls.key_file'],
	schema: (joi) =>
		allSettings<ClusterSettings>({
			url: joi
				.string()
				.max(2048)
				.custom(servers)
				.allow(null)
				.default(null)
				.description(
					'NATS servers that store the data instead of the folder, such as nats://n1:4222,nats://n2:4222. Default null.',
				),
			prefix: joi
				.string()
				.pattern(/^[A-Za-z0-9_-]{1,32}$/)
				.default('svc')
				.messages({ 'string.pattern.base': 'must have 1 to 32 of letters, digits, "-" and "_"' })
				.description('Prefix that separates several installations in one cluster. Default svc.'),
			replicas: joi
				.number()
				.valid(1, 3, 5)
				.default(3)
				.description('Copies that the cluster keeps: 3 or 5, or 1 for a single server. Default 3.'),
			format: joi
				.number()
				.integer()
				.min(1)
				.allow(null)
				.default(null)
				.description(
					'Format to which older data in the cluster is converted. Set it once every gateway has a version with this format. Default null.',
				),
			advertise: joi
				.string()
				.max(255)
				.pattern(/^[A-Za-z0-9._:-]+$/)
				.allow(null)
				.default(null)
				.messages({ 'string.pattern.base': 'must be a host name or an IP address, without a port' })
				.description(
					'Host at which the other gateways of the cluster reach this one; null: server.host, or else the name of the machine. Default null.',
				),
			credentials_file: file(joi, 'File of NATS credentials (.creds)'),
			tls: section('Files for an encrypted connection to the cluster.', {
				ca_file: file(joi, 'Certificates of the authorities that sign the servers (PEM)'),
				cert_file: file(joi, "The gateway's own certificate (PEM)"),
				key_file: file(joi, 'The key of that certificate (PEM)'),
			}),
			lend: joi
				.boolean()
				.default(true)
				.description(
					'Whether this gateway, while it waits on a cluster, lends its threads to the working gateway. Default true.',
				),
		}),
	environment: (env) =>
		Object.entries(variables).flatMap(([variable, path]) => {
			const text = env[variable]
			if (!text) return []
			return { path, variable, value: path === 'replicas' || path === 'format' ? wholeNumber(text) : text }
		}),
})

function file(joi: Root, what: string): Schema {
	return joi
		.string()
		.max(1024)
		.allow(null)
		.default(null)
		.description(`${what}, relative to the home folder. Default null.`)
}

/** Checks that all addresses have the same scheme. The message must not repeat them: they may contain a password. */
function servers(text: string, helpers: CustomHelpers): unknown {
	const addresses = text.split(',').map((one) => (URL.canParse(one.trim()) ? new URL(one.trim()) : undefined))
	const kinds = new Set(addresses.map((one) => one?.protocol))
	const [kind = ''] = kinds
	if (kinds.size === 1 && schemes.includes(kind.slice(0, -1)) && addresses.every((one) => one?.hostname)) return text
	return helpers.message({
		custom: 'must be addresses of NATS servers, separated by commas, all nats:// or all tls://, such as nats://n1:4222',
	})
}
