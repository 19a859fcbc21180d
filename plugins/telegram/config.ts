export interface TelegramConfig {
	/** Address of the Bot API: Telegram's own server, or one that the operator runs. */
	api_root: string
}

export const API_ROOT = 'https://api.telegram.org'
