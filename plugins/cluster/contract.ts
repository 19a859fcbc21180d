import type { Config } from '../../core/host/config.ts'

/** Settings of the engine, in the section `store`, and of the cooperation of its gateways. */
export type ClusterSettings = Pick<
	Config['store'],
	'url' | 'prefix' | 'replicas' | 'format' | 'advertise' | 'credentials_file' | 'tls'
> &
	Pick<Config['workers'], 'lend'>

declare module '../../config/types.ts' {
	interface StoreSettings {
		/** The prefix of streams and subjects in the cluster. */
		prefix: string
		/** Copies of each stream. */
		replicas: number
		/** The format to which older data in the cluster is converted; null: it is not converted. */
		format: number | null
		/** The host name or address at which other gateways reach this one; null: it is derived. */
		advertise: string | null
		credentials_file: string | null
		tls: { ca_file: string | null; cert_file: string | null; key_file: string | null }
	}
	interface WorkerSettings {
		/**
		 * Whether this gateway lends its threads to the working one, while it waits. Always present in a gateway; checks of
		 * plugins may get settings without it.
		 */
		lend?: boolean
	}
}

declare module '../../core/store/ports.ts' {
	interface RemoteEngines {
		nats: true
	}
}
