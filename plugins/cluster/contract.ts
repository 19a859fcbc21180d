import type { Config } from '../../core/host/config.ts'

/** Settings of the engine, in the section `store`, and of its gateways. */
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
		/** The format to which older data in the cluster is converted; null: older data keeps its format. */
		format: number | null
		/** The host name or address at which other gateways reach this one; null: derived from `server.host`. */
		advertise: string | null
		credentials_file: string | null
		tls: { ca_file: string | null; cert_file: string | null; key_file: string | null }
	}
	interface WorkerSettings {
		/**
		 * Whether this gateway, while waiting, lends its threads to the working one. Always present in a gateway; absent in some
		 * checks of plugins.
		 */
		lend?: boolean
	}
}

declare module '../../core/store/ports.ts' {
	interface RemoteEngines {
		nats: true
	}
}
