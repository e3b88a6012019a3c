"""What the C library and shells say on machines that are set up in other languages."""

from __future__ import annotations

from runyard.domain.failures.categories import Category
from runyard.domain.failures.signature import Signature

# ruff: noqa: RUF001 -- these are words of other alphabets
_WORDS = (
    (Category.CONFIG, "bash: {}", ("Kommando nicht gefunden", "Befehl nicht gefunden", "commande introuvable", "orden no encontrada", "comando non trovato", "comando não encontrado", "未找到命令", "找不到命令", "コマンドが見つかりません", "команда не найдена", "명령어를 찾을 수 없음")),
    (Category.DISK_FULL, "cp: 'x': {}", ("kein Speicherplatz mehr verfügbar", "Aucun espace disponible sur le périphérique", "No queda espacio en el dispositivo", "Spazio esaurito sul device", "Não há espaço disponível no dispositivo", "设备上没有空间", "裝置上已無多餘空間", "磁盘空间不足", "デバイスに空き領域がありません", "장치에 남은 공간이 없음", "На устройстве не осталось свободного места")),
    (Category.HOST_OOM, "fork: {}", ("Nicht genügend Hauptspeicher verfügbar", "Impossible d'allouer de la mémoire", "No se pudo asignar memoria", "无法分配内存", "メモリを確保できません", "Не удалось выделить память")),
    (Category.PATH, "cat: x: {}", ("Datei oder Verzeichnis nicht gefunden", "Aucun fichier ou dossier de ce", "No existe el archivo o el directorio", "No existe el fichero o el directorio", "File o directory non esistente", "Arquivo ou diretório inexistente", "没有那个文件或目录", "沒有此一檔案或目錄", "そのようなファイルやディレクトリはありません", "그런 파일이나 디렉터리가 없습니다", "Нет такого файла или каталога")),
    (Category.PATH, "cat: x: {}", ("Keine Berechtigung", "Permission non accordée", "Permiso denegado", "Permesso negato", "Permissão negada", "权限不够", "許可がありません", "허가 거부", "Отказано в доступе")),
)  # fmt: skip
SIGNATURES = tuple(
    Signature(category, words, sample.format(words), confidence=0.9)
    for category, sample, group in _WORDS
    for words in group
)
