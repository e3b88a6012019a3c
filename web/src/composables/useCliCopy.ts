// A job as the command that would submit it again, into the clipboard.
import { ElMessage } from "element-plus/es/components/message/index";
import "element-plus/es/components/message/style/css";
import { useI18n } from "vue-i18n";
import { api, body } from "@/api/client";
import { complain } from "@/composables/useJobActions";
import { copyText } from "@/composables/copyText";

export function useCliCopy() {
  const { t } = useI18n();

  return async function copyCli(jobRef: string): Promise<void> {
    try {
      const { cli } = await body(api.GET("/api/v1/training/jobs/{ref}/config", { params: { path: { ref: jobRef } } }));
      await copyText(cli);
      ElMessage({ type: "success", message: t("action.copiedCli", { text: cli.length > 120 ? `${cli.slice(0, 120)} …` : cli }) });
    } catch (refused) {
      complain(refused);
    }
  };
}
