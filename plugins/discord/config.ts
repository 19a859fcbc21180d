export interface DiscordConfig {
	/** Address of the REST API, without its version; it returns the gateway's address. */
	api_root: string
}
