import type { Config } from '../../core/host/config.ts'

/** Settings of the engine, which lie in the section `store`, and of what its gateways do together. */
export type ClusterSettings = Pick<
	Config['store'],
	'url' | 'prefix' | 'replicas' | 'format' | 'advertise' | 'credentials_file' | 'tls'
> &
	Pick<Config['workers'], 'lend'>

declare module '../../config/types.ts' {
	interface StoreSettings {
		/** What streams and subjects in the cluster begin with. */
		prefix: string
		/** Copies of each stream. */
		replicas: number
		/** Older data in the cluster is converted to it; null: it stays as it is. */
		format: number | null
		/** Under which name other gateways reach this one; null for one that is derived. */
		advertise: string | null
		credentials_file: string | null
		tls: { ca_file: string | null; cert_file: string | null; key_file: string | null }
	}
	interface WorkerSettings {
		/** Whether this gateway lends its threads to the working one, while it waits. Always present; checks of plugins may be given none. */
		lend?: boolean
	}
}

declare module '../../core/store/ports.ts' {
	interface RemoteEngines {
		nats: true
	}
}
