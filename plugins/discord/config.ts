export interface DiscordConfig {
	/** Address of the REST API without the version. The API returns the address of Discord's gateway. */
	api_root: string
}

export const API_ROOT = 'https://discord.com/api'

/** The allowed form of a token: no white space. */
export const TOKEN = /^[\x21-\x7e]{1,1000}$/
